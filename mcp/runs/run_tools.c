#include "run_tools.h"

#include "brigd_link.h"
#include "clean.h"
#include "client_protocol.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* More than the audit keeps. PROTOCOL_CALLS_MAX names fit into PROTOCOL_MAX, also when each character is escaped. */
enum { NAME_BYTES = 128 };

static void run_tools_report(void *owner)
{
	struct run_tools *t       = owner;
	json_t           *message = json_pack("{ss ss sb}", "op", "tools", "run", t->run, "waiting", t->is_waiting);

	loop_timer_clear(&t->mcp->loop, &t->report_timer);
	if (json_array_size(t->ended))
		json_object_set(message, "calls", t->ended);
	json_decref(t->ended);
	t->ended = json_array();
	brigd_link_send(t->mcp->brigd_link, message);
}

static void run_tools_on_late(void *owner)
{
	struct run_tools *t = owner;

	t->is_waiting = true;
	run_tools_report(t);
}

static void run_tools_on_busy(void *owner, bool busy)
{
	struct run_tools *t = owner;

	if (busy) {
		loop_timer_set(&t->mcp->loop, &t->late, RUN_TOOLS_LATE_MS);
		return;
	}
	loop_timer_clear(&t->mcp->loop, &t->late);
	if (!t->is_waiting)
		return;
	t->is_waiting = false;
	run_tools_report(t);
}

static void run_tools_on_call_ended(void *owner, const struct tool_call *c, const char *outcome)
{
	struct run_tools *t = owner;
	char              name[NAME_BYTES + 1];

	snprintf(name, sizeof name, "%.*s", (int)clean_cut_length(c->name, strlen(c->name), NAME_BYTES), c->name);
	text_make_plain(name);
	json_array_append_new(t->ended,
			      json_pack("{ss ss ss}", "name", name, "verdict", outcome, "args_sha256", c->digest));
	if (json_array_size(t->ended) == PROTOCOL_CALLS_MAX)
		run_tools_report(t);
	else if (!t->report_timer.set)
		loop_timer_set(&t->mcp->loop, &t->report_timer, RUN_TOOLS_REPORT_MS);
}

static void run_tools_on_question(void *owner)
{
	struct run_tools *t = owner;

	t->asks(t->owner);
}

int run_tools_open(struct run_tools *t, struct mcp *m, int fd, const char *run, void (*asks)(void *owner), void *owner)
{
	static const struct tool_bridge_events events = { .asks  = run_tools_on_question,
							  .busy  = run_tools_on_busy,
							  .ended = run_tools_on_call_ended };
	struct err                             ignored;

	*t = (struct run_tools){ .mcp = m, .run = run, .asks = asks, .owner = owner, .ended = json_array() };
	t->late = (struct loop_timer){ .due = run_tools_on_late, .owner = t };
	t->report_timer = (struct loop_timer){ .due = run_tools_report, .owner = t };
	if (tool_bridge_open(&t->bridge, m->broker, fd, run, &events, t, &ignored) == 0)
		return 0;
	run_tools_done(t);
	return -1;
}

void run_tools_close(struct run_tools *t)
{
	if (!t->mcp)
		return;
	tool_bridge_close(&t->bridge);
	if (json_array_size(t->ended))
		run_tools_report(t);
}

void run_tools_done(struct run_tools *t)
{
	if (!t->mcp)
		return;
	run_tools_close(t);
	loop_timer_clear(&t->mcp->loop, &t->late);
	loop_timer_clear(&t->mcp->loop, &t->report_timer);
	tool_bridge_done(&t->bridge);
	json_decref(t->ended);
	*t = (struct run_tools){ 0 };
}
