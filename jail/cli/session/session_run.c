/* session_run.c - brig session open, run and exec: a session, and calls in it */
#include "session_common.h"

#include "ask.h"
#include "command.h"
#include "one_run.h"
#include "report.h"

#include <stdio.h>

/* --- open --- */

static int open_set_request(struct request *r, char **words, int n, struct err *e)
{
	(void)words, (void)n;
	return request_set_open(r, e);
}

/* Prints what later commands call the session: its name, or else its id. */
static int print_opened_session(const struct foreground_run *c)
{
	const json_t *name = json_object_get(c->opened, "name");
	char          text[PROTOCOL_NAME_MAX + 1];

	if (!c->opened) {
		session_stop_started(&c->server);
		return report_run(c);
	}
	session_print_started(&c->server);
	if (c->request->json) {
		json_object_del(c->opened, "event");
		json_object_del(c->opened, "run");
		ask_print_json(c->opened);
	} else {
		puts(ask_copy_plain_text(json_is_string(name) ? name : json_object_get(c->opened, "session"), text, sizeof text));
	}
	return STATUS_OK;
}

const struct one_run_way session_open_way = {
	.by     = BY_OPEN,
	.help   = { "brig session open [NAME] [OPTION]...", "Open a session, and print its name, or its id if it has none.",
		    "A TIME is in seconds, or has a unit: 250ms, 90s, 5m, 1h, 1d. brig explain PROFILE prints the default and the ceiling of each limit." },
	.take   = open_set_request,
	.report = print_opened_session,
};

/* --- calls --- */

#define ABOUT_CALLS \
	"A limit ends the call, and not the session. Python that is out of time is interrupted, and keeps its variables if it stops within two seconds."

static int call_set_program(struct request *r, char **words, int n, struct err *e)
{
	r->mode = MODE_report;
	return request_set_program(r, n ? words[0] : NULL, NULL, 0, e);
}

const struct one_run_way session_run_way = {
	.by     = BY_CALL,
	.help   = { "brig session run SESSION [OPTION]... FILE|-|-c CODE",
		    "Run Python in an interpreter of a session, and print the value of the last expression.", ABOUT_CALLS },
	.take   = call_set_program,
	.report = report_run,
};

const struct one_run_way session_exec_way = {
	.by     = BY_COMMAND,
	.help   = { "brig session exec SESSION [OPTION]... -- COMMAND [ARG]...", "Run a command of the rootfs in a session.", ABOUT_CALLS },
	.take   = request_set_command,
	.report = report_run,
};
