/* run_cmd.c - brig run and brig exec: from words to a run */
#include "command.h"
#include "interrupt.h"
#include "privilege.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void usage(FILE *out, const char *line, const char *what)
{
	fprintf(out, "usage: %s\n\n%s\n\n", line, what);
	options_print(request_options, out);
	fputs("\nbrig explain PROFILE shows what each limit is when not said, and the most that may be asked for.\n", out);
}

static int complain(const char *command, const struct err *e)
{
	fprintf(stderr, "brig %s: %s\n", command, e->text);
	return STATUS_USAGE;
}

typedef int take_fn(struct request *, char **words, int n, struct err *);

static int take_program(struct request *r, char **words, int n, struct err *e)
{
	if (strcmp(words[0], "-") == 0 && r->stdin_path && strcmp(r->stdin_path, "-") == 0)
		return err_set(e, ERR_BAD_SPEC, "stdin cannot be both the program (-) and its input (--stdin -)");
	return request_take_program(r, words[0], words + 1, n - 1, e);
}

/* Large, for it holds what waits to be written to stdin. */
static int carry_out(struct server *server, struct request *r)
{
	struct session *s = calloc(1, sizeof *s);
	int             status;

	if (!s) {
		fputs("brig: out of memory\n", stderr);
		return STATUS_DENIED;
	}
	session_init(s, server, r);
	interrupt_catch();
	session_run(s);
	status = report_session(s);
	session_done(s);
	free(s);
	return status;
}

/* What comes after the drop is hostile data, and brigd's own word. */
static int connect_and_run(struct request *r)
{
	struct server server = SERVER_NONE;
	struct err    e;
	int           status;

	if (server_connect(&server, r->private ? SERVER_PRIVATE : SERVER_ANY, &e) < 0 || privilege_drop(&e) < 0)
		status = report_failure(r, &e);
	else
		status = carry_out(&server, r);
	(void)server_close(&server);
	return status;
}

static int main_of(struct request *r, int argc, char **argv, const char *line, const char *what, take_fn *take)
{
	struct err e;
	int        n = options_parse(request_options, argc, argv, r, &e);

	if (n == OPTIONS_HELP) {
		usage(stdout, line, what);
		return STATUS_OK;
	}
	if (n < 0)
		return complain(argv[0], &e);
	if (n + 1 >= argc) {
		fprintf(stderr, "brig %s: nothing to run; write: %s\n", argv[0], line);
		return STATUS_USAGE;
	}
	if (take(r, argv + n + 1, argc - n - 1, &e) < 0)
		return report_failure(r, &e);
	return connect_and_run(r);
}

static int run_or_exec(int argc, char **argv, const char *line, const char *what, take_fn *take)
{
	struct request r;
	int            status;

	signal(SIGXFSZ, SIG_IGN); /* a caller's file size limit is an error to tell, not a death */
	request_init(&r);
	status = main_of(&r, argc, argv, line, what, take);
	request_done(&r);
	return status;
}

int run_main(int argc, char **argv)
{
	return run_or_exec(argc, argv, "brig run [OPTION]... FILE|- [ARG]...", "Run a Python program in a jail.", take_program);
}

int exec_main(int argc, char **argv)
{
	return run_or_exec(argc, argv, "brig exec [OPTION]... -- COMMAND [ARG]...", "Run a command of the rootfs in a jail.",
			   request_take_command);
}
