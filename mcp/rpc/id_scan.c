#include "id_scan.h"

#include <string.h>

static bool id_scan_key_is(const struct id_scan *s, const char *name)
{
	return s->key_len == strlen(name) && memcmp(s->key, name, s->key_len) == 0;
}

/* A byte of a key or a value of the outermost object. What does not fit is counted all the same, and is no id then. */
static void id_scan_keep_byte(struct id_scan *s, char byte)
{
	if (s->before == ':' && id_scan_key_is(s, "id") && s->ids == 1 && s->id_len < sizeof s->id)
		s->id[s->id_len++] = byte;
	else if (s->before != ':' && byte != '"' && s->key_len < sizeof s->key)
		s->key[s->key_len++] = byte;
}

static void id_scan_handle_separator(struct id_scan *s, char byte)
{
	s->before = byte;
	if (byte != ':')
		s->key_len = 0;
	else if (id_scan_key_is(s, "id"))
		s->ids++;
	else if (id_scan_key_is(s, "method"))
		s->methods++;
}

static void id_scan_handle_byte(struct id_scan *s, char byte)
{
	bool is_outer = s->depth == 1;

	if (s->in_text) {
		if (is_outer)
			id_scan_keep_byte(s, byte);
		if (s->escaped || byte == '\\')
			s->escaped = !s->escaped;
		else if (byte == '"')
			s->in_text = false;
	} else if (s->depth == 0) { /* before the object, or behind it */
		s->is_dead = byte != '{' || s->before;
		s->depth   = 1;
		id_scan_handle_separator(s, byte);
	} else if (is_outer && (byte == ',' || byte == ':')) {
		id_scan_handle_separator(s, byte);
	} else {
		s->depth += byte == '{' || byte == '[';
		s->depth -= byte == '}' || byte == ']';
		s->in_text = byte == '"';
		if (is_outer && s->depth)
			id_scan_keep_byte(s, byte);
	}
}

static bool is_json_blank(char byte)
{
	return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

void id_scan_feed(struct id_scan *s, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len && !s->is_dead; i++)
		if (s->in_text || !is_json_blank(bytes[i]))
			id_scan_handle_byte(s, bytes[i]);
}

json_t *id_scan_result(const struct id_scan *s, bool is_request)
{
	bool    is_half = s->depth == 1 && s->before == ':' && id_scan_key_is(s, "id");
	json_t *id      = NULL;

	if (!s->is_dead && !is_half && s->ids == 1 && s->id_len < sizeof s->id && (!is_request || s->methods == 1))
		id = json_loadb(s->id, s->id_len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	if (json_is_string(id) || json_is_integer(id))
		return id;
	json_decref(id);
	return NULL;
}

json_t *id_scan_find(const char *bytes, size_t len, bool is_request)
{
	struct id_scan s = { 0 };

	id_scan_feed(&s, bytes, len);
	return id_scan_result(&s, is_request);
}
