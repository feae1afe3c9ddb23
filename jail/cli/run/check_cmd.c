/* check_cmd.c - brig check: reads a program in a jail without executing it, and reports what is against the profile's rules */
#include "check_report.h"
#include "command.h"
#include "one_run.h"

#include <signal.h>
#include <stdio.h>

static const char line[] = "brig check [OPTION]... FILE|-";

static void usage(const struct option_row *rows, FILE *out)
{
	fprintf(out, "usage: %s\n\nReport where a Python program breaks the rules of a profile. The program is read in a jail and not executed.\n\n", line);
	options_print(rows, out);
	fputs("\nPolicy and advice: the jail does not depend on it.\n", out);
}

static int main_of(struct request *r, int argc, char **argv)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	struct err        e;
	int               n;

	request_options(r->by, rows);
	n = options_parse(rows, argc, argv, r, &e);
	if (n == OPTIONS_HELP) {
		usage(rows, stdout);
		return STATUS_OK;
	}
	if (n >= 0 && n + 2 != argc)
		n = err_set(&e, ERR_BAD_SPEC, "name one file; write: %s", line);
	if (n < 0)
		return one_run_complain(argv[0], &e);
	if (request_take_program(r, argv[n + 1], NULL, 0, &e) < 0)
		return one_run_failure(r, &e, check_report);
	return one_run(r, check_report);
}

int check_main(int argc, char **argv)
{
	struct request r;
	int            status;

	signal(SIGXFSZ, SIG_IGN); /* a write beyond the caller's file size limit fails, and does not kill brig */
	request_init(&r, BY_CHECK);
	r.mode = MODE_check;
	status = main_of(&r, argc, argv);
	request_done(&r);
	return status;
}
