/*
 * json_text.h - JSON that is written straight into a buffer.
 *
 * For what is said at every run: a tree of jansson's is a hundred pieces of
 * heap that are dumped once and freed. Commas are put where they belong; what is
 * an object and what an array, the caller knows. What does not fit is told at
 * the end.
 */
#pragma once
#include "defs.h"

struct json_text {
	char  *to;
	size_t len, max; /* of max one byte is for the NUL */
	bool   full;
};

static inline struct json_text json_text_in(char *to, size_t room)
{
	return (struct json_text){ .to = to, .max = room - 1 };
}

/* As it is: brackets, and values that are JSON already. */
void json_text_raw(struct json_text *t, const char *text);
void json_text_key(struct json_text *t, const char *name); /* plain, as ours are */
void json_text_next(struct json_text *t);                  /* before an element of an array */

/* Values. Bytes that are no UTF-8 become U+FFFD; NULL: null. */
void json_text_string(struct json_text *t, const char *text);
void json_text_integer(struct json_text *t, int64_t value);
void json_text_figure(struct json_text *t, int64_t value); /* negative: null */
void json_text_ms(struct json_text *t, double ms);         /* to the microsecond; negative: null */
void json_text_bool(struct json_text *t, bool value);

/* The NUL-terminated text's length; 0 when something did not fit. */
size_t json_text_end(struct json_text *t);
