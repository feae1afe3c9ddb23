#define _GNU_SOURCE
#include "fixture.h"

#include <stdlib.h>
#include <sys/random.h>

#define TOOL(name) extern const struct tool tool_##name;
#include "tools.def"

/* brig's own, then the suite's. */
const struct tool *const tools[] = {
#define TOOL(name) &tool_##name,
#include "tools.def"
	&tool_test_simple_text,
	&tool_test_image_content,
	&tool_test_audio_content,
	&tool_test_embedded_resource,
	&tool_test_multiple_content_types,
	&tool_test_error_handling,
	&tool_json_schema_2020_12_tool,
	&tool_test_mirrored_header,
	&tool_test_tool_with_progress,
	&tool_test_tool_with_logging,
	&tool_test_logging_tool,
	&tool_test_sampling,
	&tool_test_elicitation,
	&tool_test_elicitation_sep1034_defaults,
	&tool_test_elicitation_sep1330_enums,
	&tool_test_missing_capability,
	&tool_test_streaming_elicitation,
	&tool_test_input_required_result_elicitation,
	&tool_test_input_required_result_sampling,
	&tool_test_input_required_result_list_roots,
	&tool_test_input_required_result_request_state,
	&tool_test_input_required_result_multiple_inputs,
	&tool_test_input_required_result_multi_round,
	&tool_test_input_required_result_tampered_state,
	&tool_test_input_required_result_capabilities,
	&tool_test_trigger_tool_change,
	&tool_test_trigger_prompt_change,
	&tool_greet,
	&tool_slow_compute,
	&tool_failing_job,
	&tool_protocol_error_job,
	&tool_confirm_delete,
	&tool_multi_input,
	&tool_test_tool_with_task,
	NULL,
};

static void add_capabilities(json_t *ours, enum revision revision)
{
	bool    modern = revision_is_modern(revision);
	json_t *more   = json_pack("{s:{s:b}, s:{s:b}, s:{}}", "tools", "listChanged", modern, "prompts", "listChanged", modern, "resources");

	if (revision >= REVISION_2025_03_26)
		json_object_set_new(more, "completions", json_object());
	if (modern)
		json_object_set_new(more, "extensions", json_pack("{s:{}}", "io.modelcontextprotocol/tasks"));
	else
		json_object_set_new(more, "logging", json_object());
	if (!modern)
		json_object_set_new(json_object_get(more, "resources"), "subscribe", json_true());
	json_object_update(ours, more);
	json_decref(more);
}

static void initialize(struct call *c)
{
	struct rpc_error e;
	json_t          *result = make_initialize_result(c, &e);

	if (!result) {
		call_answer_failure(c, &e);
		return;
	}
	add_capabilities(json_object_get(result, "capabilities"), c->revision);
	call_answer_result(c, result);
}

static void discover(struct call *c)
{
	json_t *result = make_discover_result(c);

	add_capabilities(json_object_get(result, "capabilities"), c->revision);
	call_answer_result(c, result);
}

static void tools_call(struct call *c)
{
	struct rpc_error e;

	if (mirrors_check(c, &e) < 0)
		call_answer_failure(c, &e);
	else
		method_tools_call(c);
}

/* clang-format off */
const struct method methods[] = {
	{ "initialize",               ERA_LEGACY, initialize               },
	{ "ping",                     ERA_LEGACY, method_ping              },
	{ "server/discover",          ERA_MODERN, discover                 },
	{ "tools/list",               ERA_BOTH,   method_tools_list        },
	{ "tools/call",               ERA_BOTH,   tools_call               },
	{ "resources/list",           ERA_BOTH,   resources_list           },
	{ "resources/templates/list", ERA_BOTH,   resources_templates_list },
	{ "resources/read",           ERA_BOTH,   resources_read           },
	{ "resources/subscribe",      ERA_LEGACY, resources_subscribe      },
	{ "resources/unsubscribe",    ERA_LEGACY, resources_subscribe      },
	{ "prompts/list",             ERA_BOTH,   prompts_list             },
	{ "prompts/get",              ERA_BOTH,   prompts_get              },
	{ "completion/complete",      ERA_BOTH,   completion_complete      },
	{ "logging/setLevel",         ERA_LEGACY, logging_set_level        },
	{ "subscriptions/listen",     ERA_MODERN, subscriptions_listen     },
	{ "tasks/get",                ERA_MODERN, tasks_get                },
	{ "tasks/update",             ERA_MODERN, tasks_update             },
	{ "tasks/cancel",             ERA_MODERN, tasks_cancel             },
	{ NULL,                       ERA_BOTH,   NULL                     },
};
/* clang-format on */

int conformance_open(struct conformance *ret, const struct settings *settings, struct err *e)
{
	*ret = (struct conformance){ .n_tasks = 0 };
	TAILQ_INIT(&ret->tasks);
	if (getrandom(ret->key, sizeof ret->key, 0) != sizeof ret->key)
		return err_sys(e, "getrandom");
	return mcp_open(&ret->mcp, settings, e);
}

void conformance_close(struct conformance *c)
{
	tasks_drop_all(c);
	mcp_close(&c->mcp);
}
