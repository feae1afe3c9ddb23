/* command.h - the subcommands of brig: argv[0] is the subcommand's name; the return value is brig's exit status */
#pragma once
#include "option.h"

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2, STATUS_NOT_SAVED = 74, STATUS_DENIED = 125 };

/* For --help: the usage line, what the command does, and what follows the options (NULL: nothing). */
struct command_help {
	const char *line, *what, *after;
};

/* n: a negative result of options_parse(). Prints the help, or the error in *e; returns brig's exit status. */
int command_print_help_or_error(int n, const char *command, const struct option_row *rows,
				const struct command_help *help, const struct err *e);
/* Prints the error, and returns the status. */
int command_print_error(const char *command, const struct err *e, int status);

int run_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int session_main(int argc, char **argv);
int shell_main(int argc, char **argv);
int check_main(int argc, char **argv);
int ps_main(int argc, char **argv);
int kill_main(int argc, char **argv);
int stats_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int top_main(int argc, char **argv);
int packages_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int profile_main(int argc, char **argv);
int audit_main(int argc, char **argv);
/* Executes brig-rootfs, brig-metrics or brig-doctor for the command argv[0], or brigd for brig under that name. */
int exec_program_of_command(int argc, char **argv);
