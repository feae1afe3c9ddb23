/* method_tools.c - tools/list, and the way of a tools/call to its tool */
#include "method.h"
#include "metrics.h"
#include "roots.h"
#include "tool.h"
#include "waiter.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One page: no cursor was ever given out. */
void method_tools_list(struct call *c)
{
	const json_t    *cursor = json_object_get(c->params, "cursor");
	struct rpc_error e;
	json_t          *result;

	if (cursor && !json_is_null(cursor)) {
		rpc_error_set(&e, RPC_INVALID_PARAMS, "cursor: there is one page only, which wants none");
		call_answer_failure(c, &e);
		return;
	}
	result = json_pack("{sO}", "tools", tools_list(c->mcp, c->revision));
	if (revision_is_modern(c->revision)) {
		json_object_set_new(result, "ttlMs", json_integer(3600000));
		json_object_set_new(result, "cacheScope", json_string("public"));
	}
	call_answer_result(c, result);
}

/* --- tools/call --- */

/* calls_count_of_method() includes this call. */
static bool exceeds_call_limits(struct call *c, const struct tool *t, char *why, size_t len)
{
	const struct settings *s = c->mcp->settings;
	int64_t                wait_ms;

	if (t->unbounded)
		return false;
	if (calls_count_of_method(c->mcp, c->method) > s->max_calls) {
		snprintf(why, len,
			 "Busy: %" PRIu64 " calls are being worked on, which is the most here. "
			 "Try again in a second, or when one of them has answered.",
			 s->max_calls);
		return true;
	}
	wait_ms = rate_limit_take_call(&c->mcp->rates, c->channel->principal, s->calls_per_minute, loop_now_ms());
	if (wait_ms)
		snprintf(why, len, "Too many calls: %" PRIu64 " a minute are allowed. Try again in %" PRId64 " s.",
			 s->calls_per_minute, (wait_ms + 999) / 1000);
	return wait_ms > 0;
}

static const struct tool *find_called_tool(const struct call *c, struct rpc_error *e)
{
	const json_t      *name  = json_object_get(c->params, "name");
	const char        *text  = json_string_value(name);
	const struct tool *found = text && json_string_length(name) == strlen(text) ? tool_find(text) : NULL;

	if (found && !tool_is_offered(found, c->mcp))
		found = NULL;
	if (!text)
		rpc_error_set(e, RPC_INVALID_PARAMS, "name: expected the name of a tool");
	else if (!found)
		rpc_error_set(e, RPC_INVALID_PARAMS, "Unknown tool: %.100s", text);
	return found;
}

/* The arguments, owned by c->params, so that they live as long as the call. NULL with *e. */
static const json_t *tool_call_arguments(struct call *c, struct rpc_error *e)
{
	const json_t *given = json_object_get(c->params, "arguments");

	if (!given || json_is_null(given))
		json_object_set_new(c->params, "arguments", json_object());
	else if (!json_is_object(given))
		rpc_error_set(e, RPC_INVALID_PARAMS, "arguments: expected an object");
	given = json_object_get(c->params, "arguments");
	return json_is_object(given) ? given : NULL;
}

/* The tool was found, and its arguments were taken, before the call waited. */
static void run_tool_after_roots(struct call *c)
{
	struct rpc_error   e;
	const struct tool *t = find_called_tool(c, &e);

	t->call(c, json_object_get(c->params, "arguments"));
}

void method_tools_call(struct call *c)
{
	struct rpc_error   e = { .code = RPC_INTERNAL };
	const struct tool *t = find_called_tool(c, &e);
	const json_t      *arguments;
	char               why[200];

	if (!t || !(arguments = tool_call_arguments(c, &e)))
		call_answer_failure(c, &e);
	else if (exceeds_call_limits(c, t, why, sizeof why)) {
		metrics_count_refused(c->mcp->metrics, "busy");
		if (t->refuse)
			t->refuse(c, why);
		else
			tool_answer_text(c, why, true);
	} else if (t->resumes && json_object_get(c->params, "requestState"))
		call_resume_wait(c);
	else if (t->unbounded || !roots_wait_for_list(c, run_tool_after_roots))
		t->call(c, arguments);
}
