#define _GNU_SOURCE
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Digits up to the first other character, to which *end then points. Refuses an empty number and one that overflows. */
static int parse_digits(const char *text, const char **end, uint64_t *ret)
{
	uint64_t value = 0;
	const char *p = text;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return -1;
	if (p == text)
		return -1;
	*end = p;
	*ret = value;
	return 0;
}

int text_to_u64(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t value;

	if (parse_digits(text, &end, &value) < 0 || *end)
		return -1;
	*ret = value;
	return 0;
}

int text_to_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMGT";
	const char *end, *unit;
	uint64_t value;

	if (parse_digits(text, &end, &value) < 0)
		return -1;
	if (*end && (unit = strchr(units, *end >= 'a' ? *end - 32 : *end)) && *unit) {
		for (const char *u = units; u <= unit; u++)
			if (__builtin_mul_overflow(value, 1024, &value))
				return -1;
		end++;
		if (*end == 'i' && end[1] == 'B')
			end++;
	}
	if (*end == 'B')
		end++;
	if (*end)
		return -1;
	*ret = value;
	return 0;
}

/* "12.345" in thousandths; *end points to the first character after it. */
static int parse_milli(const char *text, const char **end, uint64_t *ret)
{
	uint64_t value;

	if (parse_digits(text, end, &value) < 0 || __builtin_mul_overflow(value, 1000, &value))
		return -1;
	if (**end == '.') {
		uint64_t weight = 100;
		const char *p = *end + 1;

		if (*p < '0' || *p > '9')
			return -1;
		for (; *p >= '0' && *p <= '9'; p++, weight /= 10)
			if (weight == 0 || __builtin_add_overflow(value, weight * (uint64_t)(*p - '0'), &value))
				return -1;
		*end = p;
	}
	*ret = value;
	return 0;
}

int text_to_milli(const char *text, uint64_t *ret)
{
	const char *end;
	uint64_t value;

	if (parse_milli(text, &end, &value) < 0 || *end)
		return -1;
	*ret = value;
	return 0;
}

int text_to_duration_ms(const char *text, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t    seconds;
	} units[] = { { "", 1 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }, { "d", 86400 } };
	const char *end;
	uint64_t value;

	if (parse_milli(text, &end, &value) < 0)
		return -1;
	if (strcmp(end, "ms") == 0) {
		if (value % 1000)
			return -1;
		*ret = value / 1000;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(end, units[i].name) == 0 && !__builtin_mul_overflow(value, units[i].seconds, &value)) {
			*ret = value;
			return 0;
		}
	return -1;
}

char *text_from_size(uint64_t bytes, char *buf, size_t len)
{
	static const char units[] = "KMGT";
	int unit = -1;

	while (unit < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(buf, len, unit < 0 ? "%" PRIu64 : "%" PRIu64 "%c", bytes, unit < 0 ? 0 : units[unit]);
	return buf;
}

char *text_from_milli(uint64_t milli, char *buf, size_t len)
{
	int n = snprintf(buf, len, "%" PRIu64 ".%03u", milli / 1000, (unsigned)(milli % 1000));

	if (n < 0 || (size_t)n >= len)
		return buf;
	while (buf[n - 1] == '0')
		buf[--n] = 0;
	if (buf[n - 1] == '.')
		buf[--n] = 0;
	return buf;
}

bool text_is_identifier_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool text_is_module(const char *text)
{
	bool begins = true;

	if (strlen(text) > 100)
		return false;
	for (; *text; text++) {
		if (*text == '.' ? begins : !text_is_identifier_letter(*text) && (begins || *text < '0' || *text > '9'))
			return false;
		begins = *text == '.';
	}
	return !begins;
}

bool text_is_name(const char *text)
{
	size_t len = strlen(text);

	if (len == 0 || len > 63 || strstr(text, ".."))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (i && (c == '-' || c == '_' || c == '.'))))
			return false;
	}
	return true;
}

/*
 * Decodes the character at p and returns its length in bytes; 0: invalid, which includes overlong forms, surrogates and
 * a truncated one.
 */
static size_t utf8_decode(const unsigned char *p, const unsigned char *end, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned              more = *p < 0x80 ? 0 : (*p >> 5) == 6 ? 1 : (*p >> 4) == 14 ? 2 : (*p >> 3) == 30 ? 3 : 9;
	uint32_t              c;

	if (more == 9 || (size_t)(end - p) <= more)
		return 0;
	c = more ? *p & (0x3fu >> more) : *p;
	for (unsigned i = 1; i <= more; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	*ret = c;
	return c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : more + 1;
}

static size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
	uint32_t ignored;

	return utf8_decode(p, end, &ignored);
}

/* Eight ASCII bytes at once: programs are nearly all ASCII, and a service checks megabytes of them for clients. */
static bool next_8_bytes_are_ascii(const unsigned char *p, const unsigned char *end)
{
	uint64_t word;

	if ((size_t)(end - p) < sizeof word)
		return false;
	memcpy(&word, p, sizeof word);
	return !(word & 0x8080808080808080u);
}

bool text_is_utf8(const void *bytes, size_t len)
{
	const unsigned char *p = bytes, *end = p + len;

	while (p < end) {
		size_t n = next_8_bytes_are_ascii(p, end) ? sizeof(uint64_t) : utf8_len(p, end);

		if (!n)
			return false;
		p += n;
	}
	return true;
}

char *text_as_utf8(const void *bytes, size_t len, size_t *ret_len)
{
	const unsigned char *p = bytes, *end = p + len;
	char                *copy = malloc(3 * len + 1), *to = copy;

	while (copy && p < end) {
		size_t n = utf8_len(p, end);

		to = mempcpy(to, n ? (const char *)p : "\xef\xbf\xbd", n ? n : 3);
		p += n ? n : 1;
	}
	if (copy) {
		*to      = 0;
		*ret_len = (size_t)(to - copy);
	}
	return copy;
}

int text_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool text_is_visible_ascii(const char *text)
{
	for (; *text; text++)
		if (*text <= 0x20 || *text >= 0x7f)
			return false;
	return true;
}

void text_put_hex(const unsigned char *bytes, size_t n, char *ret)
{
	for (size_t i = 0; i < n; i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

bool text_has_control(const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		if (*p < 0x20 || *p == 0x7f)
			return true;
	return false;
}

/*
 * Characters that a terminal obeys instead of showing: C0, DEL and C1 (U+009B begins an escape sequence), separators of
 * lines and paragraphs, and marks that change the direction of text, so that a name reads as another one
 * (CVE-2021-42574).
 */
static bool is_terminal_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Moves *p over the next character; true when it can be shown. A byte that is not UTF-8 cannot, and is passed alone. */
static bool skip_plain_character(const unsigned char **p, const unsigned char *end)
{
	uint32_t c = 0;
	size_t   n = utf8_decode(*p, end, &c);

	*p += n ? n : 1;
	return n && !is_terminal_control(c);
}

bool text_ends_in(const char *text, const char *tail)
{
	size_t n = strlen(text), m = strlen(tail);

	return n > m && strcmp(text + n - m, tail) == 0;
}

bool text_is_plain(const char *text)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);

	while (p < end)
		if (!skip_plain_character(&p, end))
			return false;
	return true;
}

void text_make_plain(char *text)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);

	while (p < end) {
		const unsigned char *from = p;

		if (!skip_plain_character(&p, end))
			memset(text + (from - (const unsigned char *)text), '?', (size_t)(p - from));
	}
}
