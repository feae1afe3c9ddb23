/* run_cmd.c - brig run, brig exec and brig check */
#include "check_report.h"
#include "command.h"
#include "one_run.h"
#include "report.h"

#include <string.h>

#define ABOUT_TIMES "A TIME is in seconds, or has a unit: 250ms, 90s, 5m, 1h, 1d. brig explain PROFILE prints the default and the ceiling of each limit."

static int run_set_program(struct request *r, char **words, int n, struct err *e)
{
	bool has_file = !r->code && !r->module, is_stdin = has_file && strcmp(words[0], "-") == 0;

	r->mode = r->json ? MODE_report : MODE_script;
	if (is_stdin && r->stdin_path && strcmp(r->stdin_path, "-") == 0)
		return err_set(e, ERR_BAD_SPEC, "stdin cannot be both the program (-) and its input (--stdin -)");
	if (!is_stdin)
		request_use_inherited_stdin(r);
	return request_set_program(r, has_file ? words[0] : NULL, words + has_file, n - has_file, e);
}

int run_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){
		.by     = BY_RUN,
		.help   = { "brig run [OPTION]... FILE|DIR|-|-c CODE|-m MODULE [ARG]...", "Run a Python program in a jail.", ABOUT_TIMES },
		.take   = run_set_program,
		.report = report_run,
	});
}

int exec_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){
		.by     = BY_EXEC,
		.help   = { "brig exec [OPTION]... -- COMMAND [ARG]...", "Run a command of the rootfs in a jail.", ABOUT_TIMES },
		.take   = request_set_command,
		.report = report_run,
	});
}

/* Reads a program in a jail without executing it, and reports what is against the profile's rules. */
static int check_set_program(struct request *r, char **words, int n, struct err *e)
{
	(void)n;
	r->mode = MODE_check;
	return request_set_program(r, words[0], NULL, 0, e);
}

int check_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){
		.by     = BY_CHECK,
		.help   = { "brig check [OPTION]... FILE|-",
			    "Report where a Python program breaks the rules of a profile. The program is read in a jail and not executed.",
			    "Policy and advice: the jail does not depend on it." },
		.take   = check_set_program,
		.report = check_report,
	});
}
