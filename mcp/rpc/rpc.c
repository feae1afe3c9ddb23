#include "rpc.h"

#include "exact.h"
#include "text.h"
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sentence may quote hostile input, so it is made one line of plain text. */
int rpc_error_set(struct rpc_error *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(e->text, sizeof e->text, fmt, ap);
	va_end(ap);
	text_make_plain(e->text);
	e->code = code;
	e->data = NULL;
	return -1;
}

/* --- bytes --- */

static bool parse_hex4(const char *digits, unsigned *ret)
{
	unsigned value = 0;

	for (int i = 0; i < 4; i++) {
		const char *hex = "0123456789abcdef", *at = strchr(hex, digits[i] | 0x20);

		if (!digits[i] || !at)
			return false;
		value = value * 16 + (unsigned)(at - hex);
	}
	*ret = value;
	return true;
}

/* The UTF-16 code unit that "\uXXXX" at `at` stands for; false: there is no such escape. */
static bool parse_utf16_escape(const char *at, const char *end, unsigned *ret)
{
	return end - at >= 6 && at[0] == '\\' && at[1] == 'u' && parse_hex4(at + 2, ret);
}

/*
 * JavaScript can cut a text inside a surrogate pair and send one half of it, as \ud83d. jansson refuses that, for it is not
 * Unicode; the error would have no id, and the client would wait for its answer for ever. \ufffd, which is as long, replaces
 * the half.
 */
static bool replace_lone_surrogates(char *bytes, size_t len)
{
	const char *end    = bytes + len;
	bool        mended = false;
	unsigned    unit, next;

	for (char *p = bytes; p < end; p++) {
		if (*p != '\\')
			continue;
		if (!parse_utf16_escape(p, end, &unit) || (unit & 0xf800) != 0xd800) {
			p++;
		} else if (unit < 0xdc00 && parse_utf16_escape(p + 6, end, &next) && (next & 0xfc00) == 0xdc00) {
			p += 11;
		} else {
			memcpy(p, "\\ufffd", 6);
			mended = true;
			p += 5;
		}
	}
	return mended;
}

static json_t *load_json_text(const char *bytes, size_t len, json_error_t *why)
{
	return json_loadb(bytes, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, why);
}

static json_t *load_with_surrogates_replaced(const char *bytes, size_t len, json_error_t *why)
{
	char   *copy = malloc(len);
	json_t *found;

	if (!copy)
		return NULL;
	memcpy(copy, bytes, len);
	found = replace_lone_surrogates(copy, len) ? load_json_text(copy, len, why) : NULL;
	free(copy);
	return found;
}

json_t *rpc_load_json(const void *bytes, size_t len, struct rpc_error *e)
{
	json_error_t why;
	json_t      *found;

	if (len > RPC_MAX) {
		rpc_error_set(e, RPC_PARSE_ERROR, "the message has %zu bytes; the most is %llu", len, RPC_MAX);
		return NULL;
	}
	if (wire_find_too_deep(bytes, len, RPC_DEPTH)) {
		rpc_error_set(e, RPC_PARSE_ERROR, "nested deeper than %d", RPC_DEPTH);
		return NULL;
	}
	if (wire_memory_weight(bytes, len) > RPC_WEIGHT) {
		rpc_error_set(e, RPC_PARSE_ERROR, "too many values in one message; send large data as one text");
		return NULL;
	}
	found = load_json_text(bytes, len, &why);
	if (!found)
		found = load_with_surrogates_replaced(bytes, len, &why);
	if (!found)
		rpc_error_set(e, RPC_PARSE_ERROR, "no JSON: line %d, column %d: %.120s", why.line, why.column, why.text);
	return found;
}

/* --- a message --- */

static int parse_id(struct rpc_message *m, struct rpc_error *e)
{
	const json_t *id = json_object_get(m->source, "id");

	if (!id)
		return 0;
	if (!json_is_string(id) && !json_is_integer(id))
		return rpc_error_set(e, RPC_INVALID_REQUEST, "id: expected a text or a whole number");
	m->id = id;
	return 0;
}

static int parse_params(struct rpc_message *m, struct rpc_error *e)
{
	const json_t *params = json_object_get(m->source, "params");

	if (!params || json_is_null(params)) /* there are clients that write null for nothing */
		return 0;
	if (!json_is_object(params))
		return rpc_error_set(e, RPC_INVALID_PARAMS, "params: expected an object");
	m->params = params;
	return 0;
}

/* Decided by the keys alone, before their values are checked: what must not be answered is known even if the rest is wrong. */
static enum rpc_kind message_kind(const json_t *message)
{
	if (json_object_get(message, "method"))
		return json_object_get(message, "id") ? RPC_REQUEST : RPC_NOTIFICATION;
	return json_object_get(message, "result") || json_object_get(message, "error") ? RPC_RESPONSE : RPC_REQUEST;
}

int rpc_parse_json(struct rpc_message *ret, json_t *source, struct rpc_error *e)
{
	const char   *version = json_string_value(json_object_get(source, "jsonrpc")), *name;
	const json_t *method;

	*ret = (struct rpc_message){ .kind = RPC_REQUEST, .source = source };
	if (json_is_array(source))
		return rpc_error_set(e, RPC_INVALID_REQUEST, "an array: batches are of revision 2025-03-26 only");
	if (!json_is_object(source))
		return rpc_error_set(e, RPC_INVALID_REQUEST, "expected an object: {\"jsonrpc\":\"2.0\", ...}");
	ret->kind = message_kind(source);
	if (parse_id(ret, e) < 0)
		return -1;
	if (!version || strcmp(version, "2.0") != 0)
		return rpc_error_set(e, RPC_INVALID_REQUEST, "jsonrpc: expected \"2.0\"");
	if (ret->kind == RPC_RESPONSE) {
		ret->result = json_object_get(source, "result");
		ret->error  = json_object_get(source, "error");
		if (!ret->id || !ret->result == !ret->error)
			return rpc_error_set(e, RPC_INVALID_REQUEST, "a response has an id, and a result or an error");
		return 0;
	}
	method = json_object_get(source, "method");
	name   = json_string_value(method);
	if (!name || !*name || json_string_length(method) != strlen(name))
		return rpc_error_set(e, RPC_INVALID_REQUEST, "method: expected the name of one");
	ret->method = name;
	return parse_params(ret, e);
}

int rpc_parse(struct rpc_message *ret, const void *bytes, size_t len, struct rpc_error *e)
{
	json_t *source = rpc_load_json(bytes, len, e);

	*ret = (struct rpc_message){ .kind = RPC_REQUEST };
	return source ? rpc_parse_json(ret, source, e) : -1;
}

void rpc_message_done(struct rpc_message *m)
{
	json_decref(m->source);
	*m = (struct rpc_message){ .kind = RPC_REQUEST };
}

/* --- messages to send --- */

static json_t *new_message(const json_t *id)
{
	json_t *message = json_pack("{ss}", "jsonrpc", "2.0");

	if (id)
		json_object_set(message, "id", (json_t *)id);
	return message;
}

json_t *rpc_result(const json_t *id, json_t *result)
{
	json_t *message = new_message(id);

	json_object_set_new(message, "result", result);
	return message;
}

json_t *rpc_failure(const json_t *id, struct rpc_error *e)
{
	json_t *message = new_message(id), *error = json_pack("{siss}", "code", e->code, "message", e->text);

	if (e->data)
		json_object_set_new(error, "data", e->data);
	e->data = NULL;
	json_object_set_new(message, "error", error);
	return message;
}

json_t *rpc_request(const json_t *id, const char *method, json_t *params)
{
	json_t *message = new_message(id);

	json_object_set_new(message, "method", json_string(method));
	if (params)
		json_object_set_new(message, "params", params);
	return message;
}

json_t *rpc_notification(const char *method, json_t *params)
{
	return rpc_request(NULL, method, params);
}

/* jansson writes a newline in a text as \n: what comes out is one line. */
char *rpc_dump(const json_t *message, size_t *len)
{
	return json_dump_exact(message, JSON_COMPACT, len);
}

char *rpc_dump_to_send(const json_t *message, size_t *len)
{
	char            *text = rpc_dump(message, len);
	struct rpc_error e;
	json_t          *failure;

	if (!text || *len <= RPC_OUT_MAX)
		return text;
	rpc_error_set(&e, RPC_INTERNAL, "the answer has %zu bytes, more than clients take (%llu); ask for less, or print less", *len, RPC_OUT_MAX);
	free(text);
	failure = rpc_failure(json_object_get(message, "id"), &e);
	text    = rpc_dump(failure, len);
	json_decref(failure);
	return text;
}
