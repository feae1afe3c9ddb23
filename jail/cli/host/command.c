#include "command.h"

#include <stdio.h>

int command_print_error(const char *command, const struct err *e, int status)
{
	fprintf(stderr, "brig %s: %s\n", command, e->text);
	return status;
}

int command_print_help_or_error(int n, const char *command, const struct option_row *rows,
				const struct command_help *help, const struct err *e)
{
	if (n != OPTIONS_HELP)
		return command_print_error(command, e, STATUS_USAGE);
	printf("usage: %s\n\n%s\n\n", help->line, help->what);
	options_print(rows, stdout);
	if (help->after)
		printf("\n%s\n", help->after);
	return STATUS_OK;
}
