/* run_cmd.c - brig run and brig exec */
#include "command.h"
#include "one_run.h"
#include "report.h"

#include <string.h>

static int take_program(struct request *r, char **words, int n, struct err *e)
{
	r->mode = r->json ? MODE_report : MODE_script;
	if (r->code || r->module) {
		request_take_stdin(r);
		return request_take_program(r, NULL, words, n, e);
	}
	if (strcmp(words[0], "-") == 0 && r->stdin_path && strcmp(r->stdin_path, "-") == 0)
		return err_set(e, ERR_BAD_SPEC, "stdin cannot be both the program (-) and its input (--stdin -)");
	if (strcmp(words[0], "-") != 0)
		request_take_stdin(r);
	return request_take_program(r, words[0], words + 1, n - 1, e);
}

static int take_command(struct request *r, char **words, int n, struct err *e)
{
	request_take_stdin(r);
	return request_take_command(r, words, n, e);
}

int run_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){ BY_RUN, "brig run [OPTION]... FILE|DIR|-|-c CODE|-m MODULE [ARG]...",
							       "Run a Python program in a jail.", take_program, report_run });
}

int exec_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){ BY_EXEC, "brig exec [OPTION]... -- COMMAND [ARG]...",
							       "Run a command of the rootfs in a jail.", take_command, report_run });
}
