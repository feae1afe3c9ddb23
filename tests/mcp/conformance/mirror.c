/* mirror.c - headers Mcp-Param-* that repeat arguments of a tool, where its schema says so (modern, on HTTP) */
#include "fixture.h"
#include "http_post.h"
#include "http_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_equals(const char *text, const json_t *value)
{
	return strlen(text) == json_string_length(value) && !strcmp(text, json_string_value(value));
}

/* "1", "1.0" and "1e0" are one number. */
static bool number_equals(const char *text, double number)
{
	char  *end;
	double said = strtod(text, &end);

	return end != text && !*end && isfinite(said) && said == number;
}

static int mirror_scalar(const char *header, const char *said, const json_t *value, struct rpc_error *e)
{
	char *text = rules_decode_header_value(said);
	bool  same = false;

	if (!text)
		return rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s is not valid base64 of UTF-8 text", header);
	if (json_is_string(value))
		same = text_equals(text, value);
	else if (json_is_boolean(value))
		same = !strcmp(text, json_is_true(value) ? "true" : "false");
	else if (json_is_number(value))
		same = number_equals(text, json_number_value(value));
	free(text);
	return same ? 0 : rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s is not what the argument says", header);
}

static int mirror_check(const struct http_head *h, const char *suffix, const json_t *value, struct rpc_error *e)
{
	const char *said = head_find_param(h, suffix);
	char        header[120];

	(void)snprintf(header, sizeof header, "Mcp-Param-%.100s", suffix);
	if (!value || json_is_null(value))
		return said ? rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s belongs to an argument that is not there", header) : 0;
	return said ? mirror_scalar(header, said, value, e) :
		      rpc_error_set(e, RPC_HEADER_MISMATCH, "The header %s is missing; it must say what the argument says", header);
}

/* Only through `properties`: what hangs below a list or a choice cannot be named by a header. */
static int schema_check(const struct http_head *h, const json_t *schema, const json_t *arguments, unsigned depth, struct rpc_error *e)
{
	const char *name;
	json_t     *property;

	json_object_foreach (json_object_get(schema, "properties"), name, property) {
		const char   *suffix = json_string_value(json_object_get(property, "x-mcp-header"));
		const json_t *value  = json_object_get(arguments, name);

		if (suffix && mirror_check(h, suffix, value, e) < 0)
			return -1;
		if (!suffix && depth && schema_check(h, property, value, depth - 1, e) < 0)
			return -1;
	}
	return 0;
}

int mirrors_check(const struct call *c, struct rpc_error *e)
{
	const char        *name = json_string_value(json_object_get(c->params, "name"));
	const struct tool *t    = name && c->mcp->settings->http && revision_is_modern(c->revision) ? tool_find(name) : NULL;
	json_t            *schema;
	int                r;

	if (!t || !t->input_schema)
		return 0;
	schema = json_loads(t->input_schema, 0, NULL);
	r      = schema_check(&((struct http_post *)c->channel)->head, schema, json_object_get(c->params, "arguments"), 8, e);
	json_decref(schema);
	return r;
}
