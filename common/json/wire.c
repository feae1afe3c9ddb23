#include "wire.h"

/* jansson's own bound is 2048 levels of recursion: count brackets outside strings first. */
unsigned wire_find_too_deep(const char *bytes, size_t len, unsigned depth_max)
{
	unsigned depth = 0, line = 1;
	bool     text  = false;

	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];

		line += c == '\n';
		if (text) {
			if (c == '\\')
				i++;
			else if (c == '"')
				text = false;
		} else if (c == '"') {
			text = true;
		} else if ((c == '{' || c == '[') && ++depth > depth_max) {
			return line;
		} else if ((c == '}' || c == ']') && depth) {
			depth--;
		}
	}
	return 0;
}

/* The content of texts and numbers does not count: it is no larger in memory than in the message. */
size_t wire_memory_weight(const char *bytes, size_t len)
{
	size_t weight = 0;
	bool   text   = false;

	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];

		if (text) {
			if (c == '\\')
				i++;
			else if (c == '"')
				text = false;
		} else if (c == '"') {
			text = true;
		} else if (c == '{' || c == '[') {
			weight += 4;
		} else {
			weight += c == ',' || c == ':';
		}
	}
	return weight;
}

static json_t *parse_bounded_object(const void *bytes, size_t len, size_t max, size_t flags, struct err *e)
{
	json_error_t why;
	json_t      *message;
	unsigned     deep;

	if (len == 0 || len > max) {
		err_set(e, ERR_PROTOCOL, "%zu bytes: expected 1 to %zu", len, max);
		return NULL;
	}
	if ((deep = wire_find_too_deep(bytes, len, WIRE_DEPTH))) {
		err_set(e, ERR_PROTOCOL, "line %u: nested deeper than %d", deep, WIRE_DEPTH);
		return NULL;
	}
	message = json_loadb(bytes, len, JSON_REJECT_DUPLICATES | flags, &why);
	if (!message) {
		err_set(e, ERR_PROTOCOL, "line %d, column %d: %.120s", why.line, why.column, why.text);
		return NULL;
	}
	if (!json_is_object(message)) {
		json_decref(message);
		err_set(e, ERR_PROTOCOL, "expected an object: { ... }");
		return NULL;
	}
	return message;
}

json_t *wire_parse(const void *bytes, size_t len, size_t max, struct err *e)
{
	return parse_bounded_object(bytes, len, max, 0, e);
}

json_t *wire_parse_with_nul(const void *bytes, size_t len, size_t max, struct err *e)
{
	return parse_bounded_object(bytes, len, max, JSON_ALLOW_NUL, e);
}
