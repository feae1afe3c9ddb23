#include "bridge_line.h"

#include "exact.h"
#include "text.h"
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name, *key; /* the key that it must have beside id and op; NULL: none */
	bool        args, max;
} ops[] = {
	[BRIDGE_CALL]     = { "call", "name", true, false },
	[BRIDGE_CANCEL]   = { "cancel", NULL, false, false },
	[BRIDGE_FIND]     = { "find", "words", false, true },
	[BRIDGE_DESCRIBE] = { "describe", "name", false, false },
	[BRIDGE_NAMES]    = { "names", "under", false, false },
};

static int parse_request_text(struct bridge_request *r, struct err *e)
{
	const char   *key  = ops[r->op].key;
	const json_t *text = key ? json_object_get(r->source, key) : NULL;

	r->text = "";
	if (!key)
		return 0;
	if (!json_is_string(text) || json_string_length(text) != strlen(json_string_value(text)))
		return err_set(e, ERR_PROTOCOL, "%s: expected a text", key);
	r->text = json_string_value(text);
	return 0;
}

static int parse_request_max(struct bridge_request *r, struct err *e)
{
	const json_t *max = json_object_get(r->source, "max");

	r->max = BRIDGE_FOUND;
	if (!max)
		return 0;
	if (!json_is_integer(max) || json_integer_value(max) < 1 || json_integer_value(max) > BRIDGE_FOUND_MAX)
		return err_set(e, ERR_PROTOCOL, "max: expected 1 to %d", BRIDGE_FOUND_MAX);
	r->max = (size_t)json_integer_value(max);
	return 0;
}

static int parse_request_members(struct bridge_request *r, struct err *e)
{
	const json_t *id   = json_object_get(r->source, "id");
	const char   *name = json_string_value(json_object_get(r->source, "op"));
	size_t        keys = 2;

	for (int op = 0; op < BRIDGE_OPS && name && r->op == BRIDGE_OPS; op++)
		if (strcmp(ops[op].name, name) == 0)
			r->op = (enum bridge_op)op;
	if (!json_is_integer(id) || (r->id = json_integer_value(id)) <= 0)
		return err_set(e, ERR_PROTOCOL, "id: expected a positive whole number");
	if (r->op == BRIDGE_OPS)
		return err_set(e, ERR_PROTOCOL, "op: unknown");
	if (parse_request_text(r, e) < 0 || (ops[r->op].max && parse_request_max(r, e) < 0))
		return -1;
	if (ops[r->op].args && !json_is_object(r->args = json_object_get(r->source, "args")))
		return err_set(e, ERR_PROTOCOL, "args: expected an object");
	keys += ops[r->op].key != NULL;
	keys += ops[r->op].args || (ops[r->op].max && json_object_get(r->source, "max"));
	return json_object_size(r->source) == keys ? 0 : err_set(e, ERR_PROTOCOL, "there is a key that %s does not have", ops[r->op].name);
}

int bridge_request_parse(struct bridge_request *ret, const char *line, size_t len, struct err *e)
{
	json_error_t why;

	*ret = (struct bridge_request){ .op = BRIDGE_OPS };
	if (len > BRIDGE_LINE_MAX)
		return err_set(e, ERR_PROTOCOL, "a line has more than 1 MiB");
	if (wire_find_too_deep(line, len, BRIDGE_DEPTH))
		return err_set(e, ERR_PROTOCOL, "nested deeper than %d", BRIDGE_DEPTH);
	ret->source = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	if (!json_is_object(ret->source))
		return err_set(e, ERR_PROTOCOL, "no object of JSON: %.120s", ret->source ? "" : why.text);
	return parse_request_members(ret, e);
}

void bridge_request_done(struct bridge_request *r)
{
	json_decref(r->source);
	r->source = NULL;
}

/* --- answers --- */

const char *tool_outcome_name(enum tool_outcome o)
{
	static const char *const names[] = {
#define OUTCOME(id, doc) #id,
#include "tool_outcome.def"
	};

	return names[o];
}

json_t *bridge_answer_body(const char *key, json_t *value)
{
	json_t *body = json_object();

	json_object_set_new(body, key, value);
	return body;
}

json_t *bridge_error_body(enum tool_outcome kind, const char *fmt, ...)
{
	char    text[9 * 1024], *clean;
	size_t  len;
	va_list ap;
	json_t *body;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	clean = text_as_utf8(text, strlen(text), &len);
	body  = json_pack("{s{ss ss}}", "error", "kind", tool_outcome_name(kind), "message", clean ? clean : "");
	free(clean);
	return body;
}

char *bridge_dump_line(int64_t id, json_t *body, size_t *len, enum tool_outcome *outcome)
{
	char *line;

	json_object_set_new(body, "id", json_integer(id));
	line = json_dump_exact(body, JSON_COMPACT, len);
	json_decref(body);
	if (line && *len < BRIDGE_LINE_MAX)
		return line;
	free(line);
	*outcome = TOOL_OUTCOME_limit;
	body     = bridge_error_body(TOOL_OUTCOME_limit, "the answer has %zu bytes, and a program is given 1 MiB at once; ask for less", *len);
	json_object_set_new(body, "id", json_integer(id));
	line = json_dump_exact(body, JSON_COMPACT, len);
	json_decref(body);
	return line;
}
