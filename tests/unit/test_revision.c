#include "method.h"
#include "server_info.h"
#include "tap.h"

#include <stdlib.h>

#define META(members) "\"_meta\":{" members "}"
#define MODERN "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define ABLE   "\"io.modelcontextprotocol/clientCapabilities\":{}"

static const struct {
	const char   *name, *method, *params;
	enum revision legacy; /* what the channel has agreed on */
	int           code;   /* 0: decided */
	enum revision revision;
	int           http_status;
} requests[] = {
	/* sentence, method, members of params, agreed, code, revision, status */
	{ "without _meta a request is legacy", "tools/list", "", REVISION_2025_06_18, 0, REVISION_2025_06_18, 0 },
	{ "with other members in _meta it is legacy", "tools/list", META("\"progressToken\":0"), REVISION_2024_11_05, 0, REVISION_2024_11_05, 0 },
	{ "null as _meta is legacy", "tools/list", "\"_meta\":null", REVISION_2025_11_25, 0, REVISION_2025_11_25, 0 },
	{ "a version in _meta makes it modern, whatever was agreed on", "tools/list", META(MODERN "," ABLE), REVISION_2024_11_05, 0, REVISION_2026_07_28, 0 },
	{ "initialize may be modern, and is refused behind this", "initialize", META(MODERN "," ABLE), REVISION_2025_11_25, 0, REVISION_2026_07_28, 0 },
	{ "initialize without it is legacy", "initialize", "\"protocolVersion\":\"2026-07-28\"", REVISION_2025_11_25, 0, REVISION_2025_11_25, 0 },
	{ "server/discover is modern and wants _meta", "server/discover", "", REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "a version must be a text", "tools/list", META("\"io.modelcontextprotocol/protocolVersion\":1," ABLE), REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "a version that is not served is told so", "tools/list", META("\"io.modelcontextprotocol/protocolVersion\":\"2030-01-01\"," ABLE), REVISION_2025_11_25, RPC_UNSUPPORTED_VERSION, 0, 400 },
	{ "a legacy version is not served like that", "tools/list", META("\"io.modelcontextprotocol/protocolVersion\":\"2025-11-25\"," ABLE), REVISION_2025_11_25, RPC_UNSUPPORTED_VERSION, 0, 400 },
	{ "capabilities must be there", "tools/list", META(MODERN), REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "capabilities must be an object", "tools/list", META(MODERN ",\"io.modelcontextprotocol/clientCapabilities\":[]"), REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "a client need not say who it is", "tools/list", META(MODERN "," ABLE), REVISION_2025_11_25, 0, REVISION_2026_07_28, 0 },
	{ "who says it says it in an object", "tools/list", META(MODERN "," ABLE ",\"io.modelcontextprotocol/clientInfo\":\"x\""), REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "a level of the log is one of eight", "tools/list", META(MODERN "," ABLE ",\"io.modelcontextprotocol/logLevel\":\"loud\""), REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "debug is one of them", "tools/list", META(MODERN "," ABLE ",\"io.modelcontextprotocol/logLevel\":\"debug\""), REVISION_2025_11_25, 0, REVISION_2026_07_28, 0 },
	{ "a progress token is a text or a whole number", "tools/call", META("\"progressToken\":1.5"), REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "a progress token that is null is none", "tools/call", META("\"progressToken\":null"), REVISION_2025_11_25, 0, REVISION_2025_11_25, 0 },
	{ "_meta is an object", "tools/call", "\"_meta\":[]", REVISION_2025_11_25, RPC_INVALID_PARAMS, 0, 400 },
	{ "unknown members of _meta are none of our business", "tools/call", META(MODERN "," ABLE ",\"traceparent\":7,\"a/b\":[]"), REVISION_2025_11_25, 0, REVISION_2026_07_28, 0 },
};

static void check_request(size_t i)
{
	struct channel   ch = { .legacy = requests[i].legacy };
	char             text[600];
	scoped_rpc       m;
	struct rpc_error e    = { .code = 0 };
	enum revision    revision = 0;
	int              http_status = 0;

	snprintf(text, sizeof text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{%s}}", requests[i].method, requests[i].params);
	if (rpc_parse(&m, text, strlen(text), &e) < 0 || era_decide_revision(&m, &ch, &revision, &e, &http_status) < 0)
		tap_ok(e.code == requests[i].code && http_status == requests[i].http_status, "%s", requests[i].name);
	else
		tap_ok(requests[i].code == 0 && revision == requests[i].revision, "%s", requests[i].name);
	if (e.code == RPC_UNSUPPORTED_VERSION)
		json_decref(e.data);
}

static void check_unsupported(void)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{" META("\"io.modelcontextprotocol/protocolVersion\":\"1\"") "}}";
	struct channel    ch     = { .legacy = REVISION_LEGACY_NEWEST };
	scoped_rpc        m;
	struct rpc_error  e;
	enum revision     revision;
	int               http_status;

	tap_ok(rpc_parse(&m, text, strlen(text), &e) == 0 && era_decide_revision(&m, &ch, &revision, &e, &http_status) < 0, "an unknown version is refused before anything else is looked at");
	char *data = json_dumps(e.data, JSON_COMPACT);

	tap_is(data, "{\"supported\":[\"2026-07-28\"],\"requested\":\"1\"}", "the refusal names what is served, and what was asked for");
	free(data);
	json_decref(e.data);
}

static void check_names(void)
{
	enum revision found;
	bool          all = true;

	for (unsigned i = 0; i < REVISION_COUNT; i++)
		all = all && revision_find(revision_name((enum revision)i), &found) && found == i;
	tap_ok(all, "each revision is found by its name");
	tap_ok(!revision_find("2025-01-01", &found) && !revision_find("", &found) && !revision_find(NULL, &found), "what is no revision is not found");
}

static bool served(const char *name, enum revision r)
{
	return method_find(name, r) != NULL;
}

static void check_methods(void)
{
	static const char *const removed[] = { "initialize", "ping" }, *const undeclared[] = { "logging/setLevel", "resources/subscribe", "resources/list", "prompts/list", "subscriptions/listen", "completion/complete", "notifications/cancelled" };
	bool none = true;

	for (size_t i = 0; i < ARRAY_LEN(removed); i++)
		tap_ok(!served(removed[i], REVISION_MODERN) && served(removed[i], REVISION_2024_11_05), "%s is of the legacy revisions only", removed[i]);
	for (size_t i = 0; i < ARRAY_LEN(undeclared); i++)
		none = none && !served(undeclared[i], REVISION_MODERN) && !served(undeclared[i], REVISION_LEGACY_NEWEST);
	tap_ok(none, "what is not declared is not found");
	tap_ok(served("server/discover", REVISION_MODERN) && !served("server/discover", REVISION_LEGACY_NEWEST), "server/discover is modern only");
}

static void check_self(void)
{
	struct settings   s;
	struct mcp        m = { .settings = &s };
	settings_init(&s);
	s.timeout_ms = s.max_timeout_ms = s.yield_after_ms = 86399999;
	json_t *text = server_instructions_json(&m), *old = server_info_json(REVISION_2024_11_05);

	tap_ok(json_string_length(text) > 300 && json_string_length(text) < INSTRUCTIONS_MAX - 1, "the instructions are whole and shorter than %d characters", INSTRUCTIONS_MAX);
	tap_ok(strstr(json_string_value(text), "86399.999 s") && strstr(json_string_value(text), "network"), "they tell the limits as they are set, and that there is no network");
	tap_ok(!json_object_get(old, "title"), "a revision that has no titles gets none");
	json_decref(text);
	json_decref(old);
	settings_done(&s);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		check_request(i);
	check_unsupported();
	check_names();
	check_methods();
	check_self();
	return tap_done();
}
