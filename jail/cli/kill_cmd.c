/* kill_cmd.c - brig kill: ends a run of any client of this user */
#include "ask.h"
#include "command.h"
#include "run_talk.h"

int kill_main(int argc, char **argv)
{
	struct ask a = { 0 };
	struct err e;
	json_t    *reply;
	int        status, word;

	word = ask_parse(&a, argc, argv, 1, "brig kill [--json] RUN", "End one of your runs, by the id that brig ps prints; root can end the runs of all users.", &status);
	if (word < 0)
		return status;
	reply = ask(run_talk_cancel(argv[word], NULL), &e);
	if (!reply) {
		fprintf(stderr, "brig kill: %s\n", e.text);
		return STATUS_FAILED;
	}
	if (a.json)
		ask_print_json(reply);
	json_decref(reply);
	return STATUS_OK;
}
