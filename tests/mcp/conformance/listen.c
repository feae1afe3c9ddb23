/* listen.c - subscriptions/listen, and tools that change a list so that there is something to be told */
#include "fixture.h"

#include <string.h>

/* No work to be stopped: the call just stays. */
static void forget(struct call *c)
{
	(void)c;
}

static json_t *tagged(const struct call *c)
{
	return json_pack("{s:{s:O}}", "_meta", META_SUBSCRIPTION, c->id);
}

static bool wants(const struct call *c, const char *kind)
{
	return json_is_true(json_object_get(json_object_get(c->params, "notifications"), kind));
}

void subscriptions_listen(struct call *c)
{
	static const char *const kinds[] = { "toolsListChanged", "promptsListChanged" };
	json_t                  *params = tagged(c), *honoured = json_object();

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (wants(c, kinds[i]))
			json_object_set_new(honoured, kinds[i], json_true());
	json_object_set_new(params, "notifications", honoured);
	c->cancel = forget;
	call_notify(c, "notifications/subscriptions/acknowledged", params);
}

static void tell_all(struct mcp *m, const char *kind, const char *method)
{
	struct call *c;

	TAILQ_FOREACH(c, &m->calls, link)
		if (!strcmp(c->method, "subscriptions/listen") && wants(c, kind))
			call_notify(c, method, tagged(c));
}

static void tool_change(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tell_all(c->mcp, "toolsListChanged", "notifications/tools/list_changed");
	tool_answer_text(c, "Told who listens", false);
}

static void prompt_change(struct call *c, const json_t *arguments)
{
	(void)arguments;
	tell_all(c->mcp, "promptsListChanged", "notifications/prompts/list_changed");
	tool_answer_text(c, "Told who listens", false);
}

const struct tool tool_test_trigger_tool_change = {
	.name = "test_trigger_tool_change", .description = "Tells listeners that the tools have changed.", .input_schema = NO_ARGUMENTS, .call = tool_change,
};
const struct tool tool_test_trigger_prompt_change = {
	.name = "test_trigger_prompt_change", .description = "Tells listeners that the prompts have changed.", .input_schema = NO_ARGUMENTS, .call = prompt_change,
};
