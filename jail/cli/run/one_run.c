#include "one_run.h"

#include "command.h"
#include "interrupt.h"
#include "packages.h"
#include "privilege.h"
#include "session_common.h"

#include <signal.h>
#include <stdio.h>

static int run_and_report(struct brigd *server, struct request *r, report_fn *report)
{
	struct foreground_run c;
	int               status;

	foreground_run_init(&c, server, r, &foreground_run_events);
	interrupt_install_handlers();
	if (early_run.connected)
		foreground_run_adopt_early(&c, &early_run);
	foreground_run_wait(&c);
	status = report(&c);
	foreground_run_done(&c);
	return status;
}

/* early.c has connected and dropped privilege already, if it began the run. */
int one_run_connect(struct brigd *server, const struct request *r, struct err *e)
{
	if (early_run.connected) {
		server->sock = early_run.sock;
		snprintf(server->name, sizeof server->name, "%s", early_run.name);
		return 0;
	}
	if (r->by & IN_SESSION || r->session)
		return session_connect(server, r->start, e);
	return brigd_connect(server, r->private ? BRIGD_PRIVATE : BRIGD_ANY, e) < 0
		? -1 : privilege_keep_only_cap_kill(e);
}

int one_run_report_failure(struct request *r, const struct err *why, report_fn *report)
{
	const struct foreground_run none = { .request = r, .lost = *why };

	return report(&none);
}

/* Privilege is dropped before any data from the program, which is hostile, or from brigd arrives. */
int one_run_connect_and_run(struct request *r, report_fn *report)
{
	struct brigd server = BRIGD_NONE;
	struct err   e;
	int          status;

	if (one_run_connect(&server, r, &e) < 0)
		status = one_run_report_failure(r, &e, report);
	else
		status = run_and_report(&server, r, report);
	(void)brigd_close(&server);
	return status;
}

/* --- from words --- */

static int one_run_parse_options(struct request *r, const struct option_row *rows, int argc, char **argv, struct err *e)
{
	const char *word = NULL;
	int         n;

	if (!(r->by & IN_SESSION))
		return options_parse(rows, argc, argv, r, e);
	n = session_parse_options(rows, argc, argv, r, &word, e);
	*(r->by == BY_OPEN ? &r->name : &r->session) = word;
	return n;
}

/* left: the number of words after the options and the session. */
static int one_run_check_args(const struct request *r, int left, const struct one_run_way *way, struct err *e)
{
	bool        has_program = r->code || r->module, moves_files = r->by & (BY_PUT | BY_GET | BY_FILES | ON_PATHS);
	const char *fault       = NULL;

	if (r->by == BY_OPEN)
		fault = left ? "a session has one name" : NULL;
	else if (r->by == BY_PACKAGES)
		fault = left <= 0 && !r->requirements && !r->program ? "name packages" : NULL;
	else if (r->by == BY_CHECK)
		fault = left != 1 ? "name one file" : NULL;
	else if (moves_files)
		fault = r->session ? NULL : "name a session";
	else if (r->by & IN_SESSION && (!r->session || (left <= 0 && !has_program)))
		fault = "name a session, and what to run in it";
	else if (left <= 0 && !has_program)
		fault = "nothing to run";
	else if (r->by == BY_CALL && left > !has_program)
		fault = "a call has no arguments";
	return fault ? err_set(e, ERR_BAD_SPEC, "%s; write: %s", fault, way->help.line) : 0;
}

static int one_run_main_with_request(struct request *r, int argc, char **argv, const struct one_run_way *way)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	struct err        e;
	int               n;

	request_options(way->by, rows);
	n = one_run_parse_options(r, rows, argc, argv, &e);
	if (n >= 0 && one_run_check_args(r, argc - n - 1, way, &e) < 0)
		n = -1;
	if (n < 0)
		return command_print_help_or_error(n, argv[0], rows, &way->help, &e);
	if (way->take(r, argv + n + 1, argc - n - 1, &e) < 0)
		return way->report ? one_run_report_failure(r, &e, way->report)
				   : command_print_error(argv[0], &e, STATUS_USAGE);
	if (way->by != BY_PACKAGES && packages_add_layer(r, one_run_connect_and_run, &e) < 0)
		return way->report ? one_run_report_failure(r, &e, way->report)
				   : command_print_error(argv[0], &e, STATUS_USAGE);
	return way->carry_out ? way->carry_out(r, argv[0]) : one_run_connect_and_run(r, way->report);
}

int one_run_main(int argc, char **argv, const struct one_run_way *way)
{
	struct request r;
	int            status;

	signal(SIGXFSZ, SIG_IGN); /* a write beyond the caller's file size limit fails, and does not kill brig */
	request_init(&r, way->by);
	status = one_run_main_with_request(&r, argc, argv, way);
	request_done(&r);
	return status;
}
