#include "net_rule.h"

#include <string.h>
#include <strings.h>

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

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes the next character, percent-decoded as a server may do it. */
static char next(const char **at, const char *end)
{
	const char *p = *at;

	if (*p == '%' && end - p >= 3 && hex(p[1]) >= 0 && hex(p[2]) >= 0) {
		*at += 3;
		return (char)(hex(p[1]) << 4 | hex(p[2]));
	}
	*at += 1;
	return *p;
}

bool net_path_has_dots(const char *path, size_t len)
{
	const char *end = memchr(path, '?', len);
	size_t      dots = 0;    /* in this segment */
	bool        only = true; /* this segment has no other characters, except behind a ";" */
	bool        parameter = false;

	end = end ? end : path + len;
	while (path < end) {
		char c = next(&path, end);

		if (c == '/' || c == '\\' || c == 0) { /* some servers end the path at a NUL */
			if (only && (dots == 1 || dots == 2))
				return true;
			dots      = 0;
			only      = true;
			parameter = false;
		} else if (c == ';') {
			parameter = true;
		} else if (!parameter && c == '.') {
			dots++;
		} else if (!parameter) {
			only = false;
		}
	}
	return only && (dots == 1 || dots == 2);
}
