/* span.h - a part of bytes that another buffer owns, as in text of HTTP; they must stay where they are */
#pragma once
#include "defs.h"

struct span {
	const char *at;
	size_t      len;
};

bool        span_is(struct span s, const char *text); /* in any case of letters */
/* Also with "_" for "-": "X_API_KEY" reaches a program behind CGI or WSGI as "X-API-Key" does. */
bool        span_is_to_cgi(struct span s, const char *name);
struct span span_trim(struct span s);                 /* without blanks and tabs around it */
/* The part before the first c, which is passed over; false: there is none, and nothing changes. */
bool span_cut(struct span *rest, char c, struct span *part);
/* The next of a list with commas, trimmed; false: no more. */
bool span_next(struct span *list, struct span *item);
