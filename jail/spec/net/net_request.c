#include "net_rule.h"
#include "text.h"

#include <string.h>
#include <strings.h>

enum { DECODED_TIMES_MAX = 5 }; /* a path that changes the fifth time, too, is meant to be unclear */

enum net_method net_method_parse(const char *name, size_t len)
{
	static const struct {
		const char     *name;
		enum net_method method;
	} known[] = {
		{ "GET", NET_METHOD_GET },       { "HEAD", NET_METHOD_HEAD },     { "POST", NET_METHOD_POST },       { "PUT", NET_METHOD_PUT },
		{ "PATCH", NET_METHOD_PATCH },   { "DELETE", NET_METHOD_DELETE }, { "OPTIONS", NET_METHOD_OPTIONS }, { "TRACE", 0 },
		{ "TRACK", 0 },                  { "CONNECT", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (len == strlen(known[i].name) && strncasecmp(name, known[i].name, len) == 0)
			return memcmp(name, known[i].name, len) == 0 ? known[i].method : 0; /* "trace" is refused: a server may take it for TRACE */
	return NET_METHOD_OTHER;
}

/* A text of a path, decoded once more. What "%" cannot be decoded stays. Returns the new length. */
static size_t percent_decode_once(char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; n++) {
		bool is_escape = text[i] == '%' && len - i >= 3 && text_hex_digit(text[i + 1]) >= 0 && text_hex_digit(text[i + 2]) >= 0;

		text[n] = is_escape ? (char)(text_hex_digit(text[i + 1]) << 4 | text_hex_digit(text[i + 2])) : text[i];
		i += is_escape ? 3 : 1;
	}
	return n;
}

/* "%u002e", as some servers decode it. */
static bool has_percent_u_escape(const char *text, size_t len)
{
	for (size_t i = 0; i + 6 <= len; i++)
		if (text[i] == '%' && (text[i + 1] | 0x20) == 'u' && text_hex_digit(text[i + 2]) >= 0 && text_hex_digit(text[i + 3]) >= 0 &&
		    text_hex_digit(text[i + 4]) >= 0 && text_hex_digit(text[i + 5]) >= 0)
			return true;
	return false;
}

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
			return true;
	return false;
}

/* ".", and what begins with ".."; also behind blanks, which some servers leave out, and with blanks or ";..." behind it. */
static bool is_dot_segment(const char *at, size_t len)
{
	size_t dots = 0;

	for (; len && (*at == ' ' || (*at == '.' && dots < 2)); at++, len--)
		dots += *at == '.';
	return dots == 2 || (dots == 1 && (len == 0 || *at == ';'));
}

static bool has_dot_segment(const char *text, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i <= len; i++)
		if (i == len || text[i] == '/' || text[i] == '\\') {
			if (is_dot_segment(text + from, i - from))
				return true;
			from = i + 1;
		}
	return false;
}

bool net_path_is_unambiguous(const char *path, size_t len)
{
	char        text[NET_PATH_JUDGED_MAX];
	const char *query = memchr(path, '?', len);

	len = query ? (size_t)(query - path) : len;
	if (len > sizeof text || has_percent_u_escape(path, len))
		return false;
	memcpy(text, path, len);
	for (unsigned round = 0; round < DECODED_TIMES_MAX; round++) {
		size_t before = len;

		len = percent_decode_once(text, len);
		/* text_is_utf8() refuses overlong forms: "%c0%ae" is a dot to a careless server. */
		if (has_control(text, len) || has_percent_u_escape(text, len) || !text_is_utf8(text, len) ||
		    has_dot_segment(text, len))
			return false;
		if (len == before)
			return true;
	}
	return false;
}
