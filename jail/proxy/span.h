/* span.h - a range of bytes in a buffer that it does not own, as in the text of HTTP; the buffer must not move */
#pragma once
#include "defs.h"

struct span {
	const char *at;
	size_t      len;
};

bool        span_equals(struct span s, const char *text); /* ignores the case of letters */
bool        span_begins_with(struct span s, const char *text);
/* Also with "_" for "-": "X_API_KEY" reaches a program behind CGI or WSGI as "X-API-Key" does. */
bool        span_is_for_cgi(struct span s, const char *name);
struct span span_trim(struct span s);                 /* without blanks and tabs at both ends */
/* Cuts the part before the first c off rest, and drops that c. False: there is no c, and nothing changes. */
bool span_cut(struct span *rest, char c, struct span *part);
/* The next item of a list with commas, trimmed. False: no more. */
bool span_next(struct span *list, struct span *item);
