/* shell_cmd.c - brig shell: a terminal in a session */
#include "command.h"
#include "one_run.h"
#include "raw_terminal.h"
#include "report.h"
#include "session_common.h"
#include "shell.h"

#include <stdio.h>
#include <string.h>

static const struct command_help help = {
	"brig shell [OPTION]... [SESSION] [-- COMMAND [ARG]...]",
	"Start a shell, or COMMAND, at a terminal in a session of the service; without SESSION in one of its own, which is closed at the end.",
	"Options are for a session of its own; --env, --workdir and --quiet can be given with SESSION, too.",
};

/* [OPTION]... [SESSION [OPTION]...] [-- COMMAND [ARG]...]: returns the number of words of COMMAND, OPTIONS_FAILED or OPTIONS_HELP. */
static int shell_parse_words(struct request *r, const struct option_row *rows, int argc, char **argv, struct err *e)
{
	int n = options_parse(rows, argc, argv, r, e), more;

	if (n < 0)
		return n;
	if (n + 1 < argc && strcmp(argv[n], "--") != 0) {
		r->session = argv[++n];
		more       = options_parse(rows, argc - n, argv + n, r, e);
		if (more < 0)
			return more;
		n += more;
	}
	if (n + 1 < argc && strcmp(argv[n], "--") != 0)
		return err_set(e, ERR_BAD_SPEC, "%.40s: a command stands behind --; write: %s", argv[n + 1], help.line);
	return argc - n - 1;
}

/* Refuses options that describe a cell if the session is open already. */
static int shell_check_options(struct request *r, struct err *e)
{
	const char *option = r->profile ? "--profile" : *r->shown ? "--ro" : *r->allow_missing ? "--allow-missing" : *r->network ? "--net" : r->cold ? "--cold" : r->private ? "--private" : NULL;

	if (r->session && option)
		return err_set(e, ERR_BAD_SPEC, "%s: is for a session of its own, and %.64s is one that is there", option, r->session);
	if (!r->session && !r->profile)
		r->profile = "basic";
	return 0;
}

static int shell_connect_and_run(struct request *r, char **words, int n)
{
	struct brigd server = BRIGD_NONE;
	struct shell s;
	struct err   e;
	int          status;

	if (one_run_connect(&server, r, &e) < 0) {
		status = one_run_report_failure(r, &e, report_run);
	} else {
		shell_init(&s, &server, r, words, n);
		shell_run(&s);
		status = report_run(&s.c);
		shell_done(&s);
	}
	(void)brigd_close(&server);
	return status;
}

static int shell_main_with_request(struct request *r, int argc, char **argv)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	struct err        e;
	int               n;

	request_options(BY_SHELL, rows);
	r->profile = NULL;
	n          = shell_parse_words(r, rows, argc, argv, &e);
	if (n >= 0 && shell_check_options(r, &e) < 0)
		n = -1;
	if (n >= 0 && !raw_terminal_is_available())
		n = err_set(&e, ERR_BAD_SPEC, "standard input and output are no terminal; for scripts there is brig session exec");
	if (n < 0)
		return command_print_help_or_error(n, argv[0], rows, &help, &e);
	if (!r->session && request_set_open(r, &e) < 0)
		return one_run_report_failure(r, &e, report_run);
	return shell_connect_and_run(r, argv + argc - n, n);
}

int shell_main(int argc, char **argv)
{
	struct request r;
	int            status;

	request_init(&r, BY_SHELL);
	status = shell_main_with_request(&r, argc, argv);
	request_done(&r);
	return status;
}
