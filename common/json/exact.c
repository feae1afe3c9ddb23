#include "exact.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_SURE = 17, DIGITS_LEAST = 15, REAL_MAX = 40 };

static const char *skip_json_string(const char *at)
{
	for (at++; *at != '"'; at++)
		at += *at == '\\';
	return at + 1;
}

static bool is_real_token(const char *token, size_t len)
{
	return memchr(token, '.', len) || memchr(token, 'e', len);
}

/* Writes no more than len bytes: to may be the token itself. */
static size_t put_shortest_real(char *to, const char *token, size_t len)
{
	double value = strtod(token, NULL);
	char   text[REAL_MAX];

	for (int digits = DIGITS_LEAST; digits < DIGITS_SURE; digits++) {
		size_t n = (size_t)snprintf(text, sizeof text - 2, "%.*g", digits, value);

		if (strtod(text, NULL) != value)
			continue;
		if (!is_real_token(text, n))
			n = (size_t)snprintf(text + n, 3, ".0") + n;
		if (n > len)
			break;
		memcpy(to, text, n);
		return n;
	}
	memmove(to, token, len);
	return len;
}

static size_t shorten_reals(char *text)
{
	const char *at = text;
	char       *to = text;

	while (*at) {
		const char *end = at + 1;

		if (*at == '"')
			end = skip_json_string(at);
		else if (*at == '-' || isdigit((unsigned char)*at))
			end = at + strspn(at, "0123456789+-.eE");
		if (*at != '"' && is_real_token(at, (size_t)(end - at)) && end > at + 1) {
			to += put_shortest_real(to, at, (size_t)(end - at));
		} else {
			memmove(to, at, (size_t)(end - at));
			to += end - at;
		}
		at = end;
	}
	*to = 0;
	return (size_t)(to - text);
}

char *json_dump_exact(const json_t *value, size_t flags, size_t *len)
{
	char *text = json_dumps(value, flags | JSON_REAL_PRECISION(DIGITS_SURE));

	if (text)
		*len = shorten_reals(text);
	return text;
}
