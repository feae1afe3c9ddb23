#include "one_run.h"

#include "command.h"
#include "interrupt.h"
#include "privilege.h"
#include "session_common.h"

#include <signal.h>
#include <stdio.h>

static int carry_out(struct brigd *server, struct request *r, report_fn *report)
{
	struct run_client c;
	int               status;

	run_client_init(&c, server, r);
	interrupt_catch();
	if (early_run.connected)
		run_client_take_up(&c, &early_run);
	run_client_run(&c);
	status = report(&c);
	run_client_done(&c);
	return status;
}

/* Connects and drops privilege, unless early.c has done both. */
static int reach(struct brigd *server, const struct request *r, struct err *e)
{
	if (early_run.connected) {
		server->sock = early_run.sock;
		snprintf(server->name, sizeof server->name, "%s", early_run.name);
		return 0;
	}
	if (r->by & IN_SESSION)
		return session_connect(server, r->start, e);
	return brigd_connect(server, r->private ? BRIGD_PRIVATE : BRIGD_ANY, e) < 0 ? -1 : privilege_drop(e);
}

int one_run_failure(struct request *r, const struct err *why, report_fn *report)
{
	const struct run_client none = { .request = r, .lost = *why };

	return report(&none);
}

/* Privilege is dropped before any data from the program, which is hostile, or from brigd arrives. */
int one_run(struct request *r, report_fn *report)
{
	struct brigd server = BRIGD_NONE;
	struct err   e;
	int          status;

	if (reach(&server, r, &e) < 0)
		status = one_run_failure(r, &e, report);
	else
		status = carry_out(&server, r, report);
	(void)brigd_close(&server);
	return status;
}

int one_run_complain(const char *command, const struct err *e)
{
	fprintf(stderr, "brig %s: %s\n", command, e->text);
	return STATUS_USAGE;
}

/* --- from words --- */

static void usage(const struct option_row *rows, const struct one_run_way *way)
{
	printf("usage: %s\n\n%s\n\n", way->line, way->what);
	options_print(rows, stdout);
	puts(way->by & (BY_CALL | BY_COMMAND) ? "\nA limit ends the call, and not the session. Python that is out of time is interrupted, and keeps its variables if it stops within two seconds." :
						"\nA TIME is in seconds, or has a unit: 250ms, 90s, 5m, 1h, 1d. brig explain PROFILE prints the default and the ceiling of each limit.");
}

static int parse(struct request *r, const struct option_row *rows, int argc, char **argv, struct err *e)
{
	const char *word = NULL;
	int         n;

	if (!(r->by & IN_SESSION))
		return options_parse(rows, argc, argv, r, e);
	n = session_parse(rows, argc, argv, r, &word, e);
	*(r->by == BY_OPEN ? &r->name : &r->session) = word;
	return n;
}

/* left: the number of words after the options and the session. */
static int check_args(const struct request *r, int left, const struct one_run_way *way, struct err *e)
{
	bool has_program = r->code || r->module;

	if (r->by == BY_OPEN)
		return left ? err_set(e, ERR_BAD_SPEC, "a session has one name; write: %s", way->line) : 0;
	if ((r->by & IN_SESSION && !r->session) || (left <= 0 && !has_program))
		return err_set(e, ERR_BAD_SPEC, "%s; write: %s", r->by & IN_SESSION ? "name a session, and what to run in it" : "nothing to run", way->line);
	return r->by == BY_CALL && left > !has_program ? err_set(e, ERR_BAD_SPEC, "a call has no arguments; write: %s", way->line) : 0;
}

static int main_of(struct request *r, int argc, char **argv, const struct one_run_way *way)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	struct err        e;
	int               n;

	request_options(way->by, rows);
	n = parse(r, rows, argc, argv, &e);
	if (n == OPTIONS_HELP) {
		usage(rows, way);
		return STATUS_OK;
	}
	if (n < 0 || check_args(r, argc - n - 1, way, &e) < 0)
		return one_run_complain(argv[0], &e);
	if (way->take(r, argv + n + 1, argc - n - 1, &e) < 0)
		return one_run_failure(r, &e, way->report);
	return one_run(r, way->report);
}

int one_run_main(int argc, char **argv, const struct one_run_way *way)
{
	struct request r;
	int            status;

	signal(SIGXFSZ, SIG_IGN); /* a write beyond the caller's file size limit fails, and does not kill brig */
	request_init(&r, way->by);
	status = main_of(&r, argc, argv, way);
	request_done(&r);
	return status;
}
