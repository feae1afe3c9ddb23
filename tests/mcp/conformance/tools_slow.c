/* tools_slow.c - tools that tell something before they answer */
#include "fixture.h"

#include <string.h>

/* call_send_progress() would hold back what comes this fast. */
static void tell_progress(struct call *c, int progress)
{
	if (c->progress_token)
		call_notify(c, "notifications/progress", json_pack("{s:O,s:i,s:i}", "progressToken", c->progress_token, "progress", progress, "total", 100));
}

/* The answer has a step of its own: a client must not read it together with the progress before. */
static bool progress_step(struct call *c, int n)
{
	if (n < 3)
		tell_progress(c, 50 * n);
	else
		tool_answer_text(c, "Told 0, 50 and 100 of 100", false);
	return n == 3;
}

static void tool_with_progress(struct call *c, const json_t *arguments)
{
	(void)arguments;
	fixture_steps(c, 50, progress_step);
}

/* Modern clients are told only what they ask for on the request; legacy ones with a level that nobody keeps. */
static bool wants_info(const struct call *c)
{
	const char *level = json_string_value(json_object_get(json_object_get(c->params, "_meta"), META_LOG_LEVEL));

	if (!revision_is_modern(c->revision))
		return true;
	return level && (!strcmp(level, "debug") || !strcmp(level, "info"));
}

static void tell_info(struct call *c, const char *text)
{
	if (wants_info(c))
		call_notify(c, "notifications/message", json_pack("{s:s,s:s,s:s}", "level", "info", "logger", "conformance", "data", text));
}

static bool logging_step(struct call *c, int n)
{
	static const char *const text[] = { "Tool execution started", "Tool processing data", "Tool execution completed" };

	if (n < 3)
		tell_info(c, text[n]);
	else
		tool_answer_text(c, "Logged three messages", false);
	return n == 3;
}

static void tool_with_logging(struct call *c, const json_t *arguments)
{
	(void)arguments;
	fixture_steps(c, 50, logging_step);
}

const struct tool tool_test_tool_with_progress = {
	.name = "test_tool_with_progress", .description = "Tells progress three times.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = tool_with_progress,
};
const struct tool tool_test_tool_with_logging = {
	.name = "test_tool_with_logging", .description = "Logs three messages.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = tool_with_logging,
};
const struct tool tool_test_logging_tool = {
	.name = "test_logging_tool", .description = "Logs three messages, to who asks for them.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = tool_with_logging,
};
