/* method_initialize.c - the handshake of the legacy revisions: any number of times, also after server/discover */
#include "elicitation.h"
#include "method.h"
#include "roots.h"
#include "server_info.h"

json_t *make_initialize_result(struct call *c, struct rpc_error *e)
{
	const char   *asked = json_string_value(json_object_get(c->params, "protocolVersion"));
	enum revision agreed;

	if (!asked) {
		rpc_error_set(e, RPC_INVALID_PARAMS, "protocolVersion: expected a text, as \"%s\"",
			      revision_name(REVISION_LEGACY_NEWEST));
		return NULL;
	}
	if (!revision_find(asked, &agreed) || revision_is_modern(agreed))
		agreed = REVISION_LEGACY_NEWEST;
	c->channel->legacy = c->revision = agreed;
	c->channel->elicits =
		agreed >= REVISION_2025_06_18 && elicitation_is_offered(json_object_get(c->params, "capabilities"));
	c->channel->has_roots = json_is_object(json_object_get(json_object_get(c->params, "capabilities"), "roots"));
	roots_invalidate(c->mcp);
	return json_pack("{ss so so so}", "protocolVersion", revision_name(agreed), "capabilities",
			 server_capabilities_json(),
			 "serverInfo", server_info_json(agreed), "instructions", server_instructions_json(c->mcp));
}

void method_initialize(struct call *c)
{
	struct rpc_error e;
	json_t          *result = make_initialize_result(c, &e);

	if (result)
		call_answer_result(c, result);
	else
		call_answer_failure(c, &e);
}

void method_ping(struct call *c)
{
	call_answer_result(c, json_object());
}
