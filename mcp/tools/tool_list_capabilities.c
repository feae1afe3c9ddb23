/* tool_list_capabilities.c - the older name of get_sandbox_info, with the older keys */
#include "capabilities.h"
#include "tool.h"

static const char schema[] =
	"{\"type\":\"object\",\"properties\":{\"sandbox_type\":{\"type\":\"string\"},\"limits\":{\"type\":\"object\"},"
	"\"safe_modules\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
	"\"security_features\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
	"\"required\":[\"sandbox_type\",\"limits\",\"safe_modules\",\"security_features\"]}";

static const struct argument rows[] = { { { 0 }, false, NULL } };

static void answer_capabilities(struct call *c, const struct sandbox_info *s, const struct err *why, void *owner)
{
	(void)owner;
	sandbox_info_answer(c, capabilities_json, s, why);
}

static void list_capabilities_call(struct call *c, const json_t *arguments)
{
	static const struct sandbox_info_reader reader = { .isolation = true, .known = answer_capabilities };

	(void)arguments;
	sandbox_info_gather(c, &reader, NULL);
}

const struct tool tool_list_capabilities = {
	.name          = "list_capabilities",
	.title         = "List sandbox capabilities",
	.description   = "The older form of get_sandbox_info: kind of sandbox, limits, modules, layers of isolation.",
	.arguments     = rows,
	.output_schema = schema,
	.read_only     = true,
	.idempotent    = true,
	.unlisted      = true,
	.call          = list_capabilities_call,
};
