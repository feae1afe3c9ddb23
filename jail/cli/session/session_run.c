/* session_run.c - brig session open, run and exec: a session, and calls in it */
#include "session_common.h"

#include "ask.h"
#include "command.h"
#include "one_run.h"
#include "report.h"

#include <stdio.h>

/* --- open --- */

static int take_open(struct request *r, char **words, int n, struct err *e)
{
	(void)words, (void)n;
	return request_take_open(r, e);
}

/* Prints what later commands call the session: its name, or else its id. */
static void print_name(const json_t *event)
{
	const json_t *name = json_object_get(event, "name");
	char          text[PROTOCOL_NAME_MAX + 1];

	puts(ask_text(json_is_string(name) ? name : json_object_get(event, "session"), text, sizeof text));
}

static void print_event(json_t *event)
{
	json_object_del(event, "event");
	json_object_del(event, "run");
	ask_print_json(event);
}

static int tell_open(const struct run_client *c)
{
	if (!c->opened) {
		session_not_opened(&c->server);
		return report_run(c);
	}
	session_started(&c->server);
	if (c->request->json)
		print_event(c->opened);
	else
		print_name(c->opened);
	return STATUS_OK;
}

int session_open_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){ BY_OPEN, "brig session open [NAME] [OPTION]...",
							       "Open a session, and print its name, or its id if it has none.", take_open, tell_open });
}

/* --- run --- */

static int take_call(struct request *r, char **words, int n, struct err *e)
{
	r->mode = MODE_report;
	return request_take_program(r, n ? words[0] : NULL, NULL, 0, e);
}

int session_run_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){ BY_CALL, "brig session run SESSION [OPTION]... FILE|-|-c CODE",
							       "Run Python in an interpreter of a session, and print the value of the last expression.", take_call, report_run });
}

/* --- exec --- */

static int take_command(struct request *r, char **words, int n, struct err *e)
{
	request_take_stdin(r);
	return request_take_command(r, words, n, e);
}

int session_exec_main(int argc, char **argv)
{
	return one_run_main(argc, argv, &(struct one_run_way){ BY_COMMAND, "brig session exec SESSION [OPTION]... -- COMMAND [ARG]...",
							       "Run a command of the rootfs in a session.", take_command, report_run });
}
