/* run_cmd.c - brig run and brig exec: from words to a run */
#include "command.h"
#include "one_run.h"
#include "report.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What brig run and brig exec differ in. */
struct way {
	const struct option_row *options;
	const char              *line, *what;
	int (*take)(struct request *, char **words, int n, struct err *);
};

static void usage(FILE *out, const struct way *way)
{
	fprintf(out, "usage: %s\n\n%s\n\n", way->line, way->what);
	options_print(way->options, out);
	fputs("\nbrig explain PROFILE prints the default and the ceiling of each limit.\n", out);
}

/*
 * As for a Python of the host: what is piped in, or a file, is for the program. A terminal is not, nor a device like
 * /dev/null: a program that reads its input would wait for keys.
 */
static void take_stdin(struct request *r)
{
	struct stat st;

	if (!r->stdin_path && fstat(STDIN_FILENO, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode)))
		r->stdin_path = "-";
}

static int take_program(struct request *r, char **words, int n, struct err *e)
{
	r->mode = r->json ? MODE_report : MODE_script;
	if (r->code || r->module) {
		take_stdin(r);
		return request_take_program(r, NULL, words, n, e);
	}
	if (strcmp(words[0], "-") == 0 && r->stdin_path && strcmp(r->stdin_path, "-") == 0)
		return err_set(e, ERR_BAD_SPEC, "stdin cannot be both the program (-) and its input (--stdin -)");
	if (strcmp(words[0], "-") != 0)
		take_stdin(r);
	return request_take_program(r, words[0], words + 1, n - 1, e);
}

static int main_of(struct request *r, int argc, char **argv, const struct way *way)
{
	struct err e;
	int        n = options_parse(way->options, argc, argv, r, &e);

	if (n == OPTIONS_HELP) {
		usage(stdout, way);
		return STATUS_OK;
	}
	if (n < 0)
		return one_run_complain(argv[0], &e);
	if (n + 1 >= argc && !r->code && !r->module) {
		fprintf(stderr, "brig %s: nothing to run; write: %s\n", argv[0], way->line);
		return STATUS_USAGE;
	}
	if (way->take(r, argv + n + 1, argc - n - 1, &e) < 0)
		return one_run_failure(r, &e, report_run);
	return one_run(r, report_run);
}

static int run_or_exec(int argc, char **argv, const struct way *way)
{
	struct request r;
	int            status;

	signal(SIGXFSZ, SIG_IGN); /* a caller's file size limit is an error to tell, not a death */
	request_init(&r);
	status = main_of(&r, argc, argv, way);
	request_done(&r);
	return status;
}

static int take_command(struct request *r, char **words, int n, struct err *e)
{
	take_stdin(r);
	return request_take_command(r, words, n, e);
}

int run_main(int argc, char **argv)
{
	return run_or_exec(argc, argv, &(struct way){ request_options, "brig run [OPTION]... FILE|DIR|-|-c CODE|-m MODULE [ARG]...",
						      "Run a Python program in a jail.", take_program });
}

int exec_main(int argc, char **argv)
{
	return run_or_exec(argc, argv, &(struct way){ request_exec_options, "brig exec [OPTION]... -- COMMAND [ARG]...",
						      "Run a command of the rootfs in a jail.", take_command });
}
