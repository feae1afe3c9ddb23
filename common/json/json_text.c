#include "json_text.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

static void json_text_put(struct json_text *t, const char *bytes, size_t len)
{
	if (len > t->max - t->len)
		t->full = true;
	if (t->full)
		return;
	memcpy(t->to + t->len, bytes, len);
	t->len += len;
}

void json_text_raw(struct json_text *t, const char *text)
{
	json_text_put(t, text, strlen(text));
}

void json_text_comma(struct json_text *t)
{
	char last = t->len ? t->to[t->len - 1] : '{';

	if (last != '{' && last != '[' && last != ':')
		json_text_put(t, ",", 1);
}

void json_text_key(struct json_text *t, const char *name)
{
	json_text_comma(t);
	json_text_put(t, "\"", 1);
	json_text_raw(t, name);
	json_text_put(t, "\":", 2);
}

/* --- strings --- */

static void put_escaped_byte(struct json_text *t, unsigned char c)
{
	static const char digits[] = "0123456789ABCDEF", letters[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
	const char       *letter = c ? strchr(letters, c) : NULL;
	const char        byte[] = { '\\', 'u', '0', '0', digits[c >> 4], digits[c & 15] };

	if (letter)
		json_text_put(t, (const char[]){ '\\', names[letter - letters] }, 2);
	else
		json_text_put(t, byte, sizeof byte);
}

static void put_quoted_utf8(struct json_text *t, const char *text, size_t len)
{
	size_t done = 0;

	json_text_put(t, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= ' ' && c != '"' && c != '\\')
			continue;
		json_text_put(t, text + done, i - done);
		put_escaped_byte(t, c);
		done = i + 1;
	}
	json_text_put(t, text + done, len - done);
	json_text_put(t, "\"", 1);
}

/* A text that is not UTF-8, as a client may send it: its invalid bytes are replaced, the text is not left out. */
static void put_quoted_repaired(struct json_text *t, const char *text, size_t len)
{
	char *mended = text_as_utf8(text, len, &len);

	if (mended)
		put_quoted_utf8(t, mended, len);
	else
		json_text_raw(t, "null");
	free(mended);
}

void json_text_string(struct json_text *t, const char *text)
{
	size_t len = text ? strlen(text) : 0;

	if (!text)
		json_text_raw(t, "null");
	else if (text_is_utf8(text, len))
		put_quoted_utf8(t, text, len);
	else
		put_quoted_repaired(t, text, len);
}

/* --- numbers --- */

enum { DIGITS_MAX = 20 };

static void put_decimal(struct json_text *t, uint64_t value)
{
	char digits[DIGITS_MAX], *at = digits + sizeof digits;

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	json_text_put(t, at, (size_t)(digits + sizeof digits - at));
}

void json_text_integer(struct json_text *t, int64_t value)
{
	if (value < 0)
		json_text_put(t, "-", 1);
	put_decimal(t, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_text_count_or_null(struct json_text *t, int64_t value)
{
	if (value < 0)
		json_text_raw(t, "null");
	else
		json_text_integer(t, value);
}

#define MS_MAX 9e15 /* in microseconds: below 2^53, so a double holds them exactly */

/* Always a real, with a point: 7.412, 5.0. NaN and numbers that are too large become null. */
void json_text_ms(struct json_text *t, double ms)
{
	uint64_t us;

	if (!(ms >= 0 && ms < MS_MAX / 1000)) {
		json_text_raw(t, "null");
		return;
	}
	us = (uint64_t)(ms * 1000 + 0.5);
	put_decimal(t, us / 1000);
	json_text_put(t, ".", 1);
	us %= 1000;
	for (unsigned weight = 100; weight == 100 || (us && weight); us %= weight, weight /= 10)
		json_text_put(t, (const char[]){ (char)('0' + us / weight) }, 1);
}

void json_text_bool(struct json_text *t, bool value)
{
	json_text_raw(t, value ? "true" : "false");
}

size_t json_text_finish(struct json_text *t)
{
	if (t->full)
		t->len = 0;
	t->to[t->len] = 0;
	return t->len;
}
