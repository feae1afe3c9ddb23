#include "clean.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { ESC = 0x1b, BEL = 0x07, DEL = 0x7f, ESCAPE_MAX = 4096 /* anything longer is not an escape but an attempt to hide text */ };

/* --- terminal escapes (ECMA-48) --- */

/* What follows ESC [: parameters, intermediate bytes, one final byte, which is missing if the text ends first. */
static size_t control_sequence_length(const unsigned char *p, const unsigned char *end)
{
	const unsigned char *at = p;

	while (at < end && at - p < ESCAPE_MAX && *at >= 0x20 && *at <= 0x3f)
		at++;
	return (size_t)(at - p) + (at < end && *at >= 0x40 && *at <= 0x7e);
}

/* A window title or a link: up to BEL or ESC \. If the end is missing only the introducer is removed, so that no text is hidden. */
static size_t control_string_length(const unsigned char *p, const unsigned char *end)
{
	for (const unsigned char *at = p; at < end && at - p < ESCAPE_MAX; at++) {
		if (*at == BEL)
			return (size_t)(at - p) + 1;
		if (*at == ESC && at + 1 < end && at[1] == '\\')
			return (size_t)(at - p) + 2;
		if (*at == '\n')
			return 0;
	}
	return 0;
}

/* Bytes of the escape that begins at p, at least 1. */
static size_t escape_length(const unsigned char *p, const unsigned char *end)
{
	const unsigned char *at = p + 1;

	if (at == end)
		return 1;
	if (*at == '[')
		return 2 + control_sequence_length(at + 1, end);
	if (*at == ']' || *at == 'P' || *at == 'X' || *at == '^' || *at == '_')
		return 2 + control_string_length(at + 1, end);
	while (at < end && *at >= 0x20 && *at <= 0x2f)
		at++;
	return (size_t)(at - p) + (at < end && *at >= 0x30 && *at <= 0x7e);
}

/* --- */

static bool is_blank_control(unsigned char c)
{
	return c == '\n' || c == '\t' || c == '\r';
}

/* C1, U+0080 to U+009F: U+009B begins a sequence as ESC [ does. */
static bool is_c1_control(const unsigned char *p, const unsigned char *end)
{
	return p[0] == 0xc2 && p + 1 < end && p[1] >= 0x80 && p[1] < 0xa0;
}

/* Bytes to be left out at p; 0: it stays. */
static size_t removable_length(const unsigned char *p, const unsigned char *end, bool keep_escapes)
{
	if (*p == 0)
		return 1;
	if (keep_escapes)
		return 0;
	if (*p == ESC)
		return escape_length(p, end);
	if (is_c1_control(p, end))
		return p[1] == 0x9b ? 2 + control_sequence_length(p + 2, end) : 2;
	return (*p < 0x20 && !is_blank_control(*p)) || *p == DEL;
}

static size_t strip_escapes(char *text, size_t len, bool keep_escapes)
{
	const unsigned char *p = (unsigned char *)text, *end = p + len;
	char                *to = text;

	while (p < end) {
		size_t n = removable_length(p, end, keep_escapes);

		if (n)
			p += n;
		else
			*to++ = (char)*p++;
	}
	*to = 0;
	return (size_t)(to - text);
}

char *clean_text(const void *bytes, size_t len, bool keep_escapes, size_t *ret_len)
{
	size_t n;
	char  *text = text_as_utf8(bytes ? bytes : "", len, &n);

	if (text)
		*ret_len = strip_escapes(text, n, keep_escapes);
	return text;
}

json_t *clean_text_to_json(const char *bytes, size_t len)
{
	size_t  n;
	char   *text = clean_text(bytes, len, false, &n);
	json_t *made = text ? json_stringn(text, n) : NULL;

	free(text);
	return made;
}

/* The last part of a line that is not empty; carriage returns are between parts. */
static size_t last_overwritten_part(const char *line, size_t len, size_t *from)
{
	while (len && line[len - 1] == '\r')
		len--;
	for (*from = len; *from && line[*from - 1] != '\r'; --*from)
		;
	return len - *from;
}

size_t clean_drop_overwritten(char *text, size_t len)
{
	size_t to = 0, from;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t      n = end ? (size_t)(end - text) - at : len - at, left = last_overwritten_part(text + at, n, &from);

		memmove(text + to, text + at + from, left);
		to += left;
		at += n;
		if (end)
			text[to++] = text[at++];
	}
	text[to] = 0;
	return to;
}

/* --- cutting --- */

static bool is_utf8_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* The length of the UTF-8 character that begins with this byte. */
static size_t utf8_length_of_lead(unsigned char c)
{
	return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
}

size_t clean_whole_characters(const char *bytes, size_t len)
{
	size_t back = 1;

	while (back < 4 && back < len && is_utf8_continuation(bytes[len - back]))
		back++;
	return back <= len && utf8_length_of_lead((unsigned char)bytes[len - back]) > back ? len - back : len;
}

size_t clean_cut_length(const char *text, size_t len, size_t max)
{
	if (max >= len)
		return len;
	while (max && is_utf8_continuation(text[max]))
		max--;
	return max;
}

size_t clean_next_boundary(const char *text, size_t len, size_t from)
{
	while (from < len && is_utf8_continuation(text[from]))
		from++;
	return from < len ? from : len;
}

/* A quote becomes \" and then \\\"; a newline \n and then \\n. */
static size_t json_escaped_weight(unsigned char c)
{
	if (c == '"' || c == '\\')
		return 4;
	if (is_blank_control(c))
		return 3;
	return c < 0x20 || c == DEL ? 7 : 1;
}

size_t clean_fit_escaped(const char *text, size_t len, size_t max)
{
	size_t sum = 0, n = 0;

	while (n < len && (sum += json_escaped_weight((unsigned char)text[n])) <= max)
		n++;
	return clean_cut_length(text, len, n);
}
