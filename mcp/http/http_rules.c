#include "http_rules.h"

#include "base64.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A header carries UTF-8 text without NUL. */
static char *decode_base64_text(const char *text, size_t len)
{
	size_t used = 0;
	char  *ret  = base64_decode(text, len, &used);

	if (ret && !memchr(ret, 0, used) && text_is_utf8(ret, used))
		return ret;
	free(ret);
	return NULL;
}

char *rules_decode_header_value(const char *value)
{
	static const char before[] = "=?base64?", after[] = "?=";
	size_t            len = strlen(value), b = sizeof before - 1, a = sizeof after - 1;

	if (len < b + a || strncmp(value, before, b) != 0 || strcmp(value + len - a, after) != 0)
		return strdup(value);
	return decode_base64_text(value + b, len - b - a);
}

/* --- which era --- */

#define modern revision_name((enum revision)REVISION_MODERN)

static int set_unsupported_version(struct rpc_error *e, const char *asked)
{
	(void)rpc_error_set(e, RPC_UNSUPPORTED_VERSION, "Protocol version %.40s is not served; send %s", asked, modern);
	e->data = json_pack("{s:[s],s:s}", "supported", modern, "requested", asked);
	return -1;
}

static enum http_era era_of_header_version(const struct http_head *h, enum revision *legacy, struct rpc_error *e)
{
	/* Revision 2025-03-26 does not have this header. */
	*legacy = REVISION_2025_03_26;
	if (!h->protocol_version)
		return HTTP_ERA_LEGACY;
	if (!revision_find(h->protocol_version, legacy))
		return set_unsupported_version(e, h->protocol_version);
	if (!revision_is_modern(*legacy))
		return HTTP_ERA_LEGACY;
	return rpc_error_set(e, RPC_INVALID_PARAMS,
			     "params._meta lacks \"" META_VERSION
			     "\": write the version of the header MCP-Protocol-Version there, too");
}

enum http_era rules_decide_era(const struct http_head *h, const struct rpc_message *m, enum revision *legacy,
			struct rpc_error *e)
{
	const json_t *claimed = json_object_get(json_object_get(m->params, "_meta"), META_VERSION);
	const char   *version = json_string_value(claimed);

	if (m->kind == RPC_RESPONSE || !claimed)
		return era_of_header_version(h, legacy, e);
	if (!h->protocol_version)
		return rpc_error_set(e, RPC_HEADER_MISMATCH, "The header MCP-Protocol-Version is missing; send %.40s",
				     version ? version : modern);
	if (version && strcmp(version, h->protocol_version) != 0)
		return rpc_error_set(
			e, RPC_HEADER_MISMATCH,
			"The header MCP-Protocol-Version has %.40s, params._meta has %.40s; send the same in both",
			h->protocol_version, version);
	return HTTP_ERA_MODERN;
}

/* --- the headers that repeat the body --- */

static int check_header_equals(const char *name, const char *header, const json_t *body, struct rpc_error *e)
{
	char *value;
	bool  same;

	if (!header)
		return rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s is missing; it must match the body",
				     name);
	value = rules_decode_header_value(header);
	if (!value)
		return rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s is not valid base64 of UTF-8 text", name);
	same = strlen(value) == json_string_length(body) && !strcmp(value, json_string_value(body));
	free(value);
	return same ? 0 : rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s does not match the body", name);
}

/* The parameter that Mcp-Name repeats; NULL: the method has none. */
static const char *mcp_name_param_of(const char *method)
{
	static const char *const rows[][2] = {
		{ "tools/call",     "name"   }, { "prompts/get",    "name"   }, { "resources/read", "uri"    },
		{ "tasks/get",      "taskId" }, { "tasks/update",   "taskId" }, { "tasks/cancel",   "taskId" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (!strcmp(rows[i][0], method))
			return rows[i][1];
	return NULL;
}

static int check_standard_headers(const struct http_head *h, const struct rpc_message *m, struct rpc_error *e)
{
	const char   *key  = mcp_name_param_of(m->method);
	const json_t *name = key ? json_object_get(m->params, key) : NULL;

	if (!h->mcp_method)
		return rpc_error_set(e, RPC_HEADER_MISMATCH,
				     "The header Mcp-Method is missing; it must match the body");
	if (strcmp(h->mcp_method, m->method) != 0)
		return rpc_error_set(e, RPC_HEADER_MISMATCH, "The header Mcp-Method does not match the body");
	return json_is_string(name) ? check_header_equals("Mcp-Name", h->mcp_name, name, e) : 0;
}

int rules_check_headers(const struct http_head *h, const struct rpc_message *m, struct rpc_error *e)
{
	if (m->kind == RPC_RESPONSE)
		return rpc_error_set(e, RPC_INVALID_REQUEST,
				     "This revision has no requests of the server, so there is nothing to respond to");
	return check_standard_headers(h, m, e);
}

int rules_check_param_header(const struct http_head *h, const char *name, const json_t *argument, struct rpc_error *e)
{
	const char *value = head_find_param(h, name);
	char        header[64];

	(void)snprintf(header, sizeof header, "Mcp-Param-%.40s", name);
	if (json_is_string(argument))
		return check_header_equals(header, value, argument, e);
	if (value && (!argument || json_is_null(argument)))
		return rpc_error_set(e, RPC_HEADER_MISMATCH,
				     "The header %s repeats an argument that is not in the body", header);
	return 0;
}
