#include "method.h"

#include "server_request.h"
#include "roots.h"
#include "server_info.h"

#include <string.h>

const struct method *method_find(const char *name, enum revision revision)
{
	enum method_eras era = revision_is_modern(revision) ? ERA_MODERN : ERA_LEGACY;

	for (const struct method *row = methods; row->name; row++)
		if ((row->eras & era) && strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

/* --- which era --- */

static int set_bad_meta_error(struct rpc_error *e, int *http_status, const char *key, const char *expected)
{
	*http_status = 400;
	return rpc_error_set(e, RPC_INVALID_PARAMS, "_meta: %s: expected %s", key, expected);
}

static bool is_log_level_name(const json_t *level)
{
	static const char *const levels[] = { "debug", "info",     "notice", "warning",
					      "error", "critical", "alert",  "emergency" };

	for (size_t i = 0; i < ARRAY_LEN(levels); i++)
		if (json_is_string(level) && strcmp(json_string_value(level), levels[i]) == 0)
			return true;
	return false;
}

static int check_optional_meta(const json_t *meta, struct rpc_error *e, int *http_status)
{
	const json_t *token  = json_object_get(meta, "progressToken");
	const json_t *client = json_object_get(meta, META_CLIENT);
	const json_t *level  = json_object_get(meta, META_LOG_LEVEL);

	if (token && !json_is_null(token) && !json_is_string(token) && !json_is_integer(token))
		return set_bad_meta_error(e, http_status, "progressToken", "a text or a whole number");
	if (client && !json_is_object(client))
		return set_bad_meta_error(e, http_status, META_CLIENT, "an object");
	if (level && !is_log_level_name(level))
		return set_bad_meta_error(e, http_status, META_LOG_LEVEL,
				"one of debug, info, notice, warning, error, critical, alert, emergency");
	return 0;
}

static int set_unsupported_version_error(struct rpc_error *e, int *http_status, const char *requested)
{
	*http_status = 400;
	rpc_error_set(e, RPC_UNSUPPORTED_VERSION, "revision %.40s is not served here; supported: %s", requested,
		      revision_name(REVISION_MODERN));
	e->data = json_pack("{soso}", "supported", server_supported_versions_json(), "requested",
			    json_string(requested));
	return -1;
}

int era_check_modern(const struct rpc_message *message, enum revision *ret, struct rpc_error *e, int *http_status)
{
	const json_t *meta = json_object_get(message->params, "_meta"), *version = json_object_get(meta, META_VERSION);
	enum revision found;

	if (!json_is_object(meta))
		return set_bad_meta_error(e, http_status, META_VERSION, "an object _meta in params that says it");
	if (!json_is_string(version))
		return set_bad_meta_error(e, http_status, META_VERSION, "the revision as a text, as \"2026-07-28\"");
	if (!revision_find(json_string_value(version), &found) || !revision_is_modern(found))
		return set_unsupported_version_error(e, http_status, json_string_value(version));
	if (!json_is_object(json_object_get(meta, META_CAPABILITIES)))
		return set_bad_meta_error(e, http_status, META_CAPABILITIES, "an object, {} for none");
	if (check_optional_meta(meta, e, http_status) < 0)
		return -1;
	*ret = found;
	return 0;
}

int era_decide_revision(const struct rpc_message *message, const struct channel *ch, enum revision *ret,
			struct rpc_error *e, int *http_status)
{
	const json_t *meta = json_object_get(message->params, "_meta");

	if (json_object_get(meta, META_VERSION) || strcmp(message->method, "server/discover") == 0)
		return era_check_modern(message, ret, e, http_status);
	if (meta && !json_is_object(meta) && !json_is_null(meta))
		return set_bad_meta_error(e, http_status, "_meta", "an object");
	if (check_optional_meta(meta, e, http_status) < 0)
		return -1;
	*ret = ch->legacy;
	return 0;
}

/* --- requests --- */

static void start_method_call(struct mcp *m, struct channel *ch, void *channel_data, const struct rpc_message *message,
			  enum revision revision)
{
	const struct method *method = method_find(message->method, revision);
	bool                 twice  = calls_find_by_id(m, ch, message->id) != NULL;
	struct call         *c      = call_create(m, ch, channel_data, message, revision);
	struct rpc_error     e;

	if (!c)
		return;
	if (twice) {
		rpc_error_set(&e, RPC_INVALID_REQUEST, "id: a request with this one is still being worked on");
		call_answer_failure(c, &e);
	} else if (!method) {
		rpc_error_set(&e, RPC_METHOD_NOT_FOUND, "Method not found: %.100s", message->method);
		call_answer_failure(c, &e);
	} else {
		method->call(c);
	}
}

void dispatch_message_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message,
		 enum revision revision)
{
	struct call *c = NULL;

	switch (message->kind) {
	case RPC_REQUEST:
		start_method_call(m, ch, channel_data, message, revision);
		return;
	case RPC_NOTIFICATION:
		if (strcmp(message->method, "notifications/roots/list_changed") == 0)
			roots_invalidate(m);
		if (strcmp(message->method, "notifications/cancelled") == 0)
			c = calls_find_to_cancel(m, ch, json_object_get(message->params, "requestId"));
		if (c) /* NULL: the call has just ended */
			call_cancel_and_free(c);
		return;
	case RPC_RESPONSE:
		client_request_deliver_response(m, ch, message);
		return;
	}
}

void dispatch_message(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message)
{
	enum revision    revision = ch->legacy;
	struct rpc_error e;
	struct call     *c;
	int              http_status;

	if (message->kind != RPC_REQUEST || era_decide_revision(message, ch, &revision, &e, &http_status) == 0) {
		dispatch_message_as(m, ch, channel_data, message, revision);
		return;
	}
	c = call_create(m, ch, channel_data, message, revision);
	if (c)
		call_answer_failure_status(c, &e, http_status);
}
