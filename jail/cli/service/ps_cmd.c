/* ps_cmd.c - brig ps: the runs of the running service */
#include "ask.h"
#include "command.h"
#include "page.h"

static void print_text_column(const json_t *row, const char *key, int width, FILE *out)
{
	char text[64];

	fprintf(out, "%-*s ", width, ask_copy_plain_text(json_object_get(row, key), text, sizeof text));
}

static void print_run_row(const json_t *run, FILE *out)
{
	const json_t *program = json_object_get(run, "program"); /* older services have none */
	char          what[128];

	print_text_column(run, "run", RUN_ID_LEN, out);
	print_text_column(run, "profile", 12, out);
	print_text_column(run, "state", 8, out);
	fprintf(out, "%8.1f %6" JSON_INTEGER_FORMAT " %7" JSON_INTEGER_FORMAT " ",
		(double)ask_reply_integer(run, "age_ms") / 1000, ask_reply_integer(run, "uid"),
		ask_reply_integer(run, "pid"));
	fprintf(out, "%s\n", ask_copy_plain_text(program ? program : json_object_get(run, "comm"), what, sizeof what));
}

void ps_print_runs(const json_t *reply, FILE *out)
{
	const json_t *runs = json_object_get(reply, "runs");

	fprintf(out, "%-*s %-12s %-8s %8s %6s %7s COMMAND\n", RUN_ID_LEN, "RUN", "PROFILE", "STATE", "SECONDS", "UID",
		"PID");
	for (size_t i = 0; i < json_array_size(runs); i++)
		print_run_row(json_array_get(runs, i), out);
	if (ask_reply_integer(reply, "left_out"))
		fprintf(out, "and %" JSON_INTEGER_FORMAT " more\n", ask_reply_integer(reply, "left_out"));
}

int ps_main(int argc, char **argv)
{
	return ask_and_print(argc, argv, "brig ps [--json]",
			     "List your runs in the service; root sees the runs of all users.",
			     "list", ps_print_runs);
}
