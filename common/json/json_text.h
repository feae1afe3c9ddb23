/*
 * json_text.h - writes JSON straight into a buffer.
 *
 * For messages of every run: a jansson tree would be a hundred allocations that
 * are dumped once and freed. Commas are added automatically, brackets are the
 * caller's. json_text_finish() returns whether all has fitted.
 */
#pragma once
#include "defs.h"

struct json_text {
	char  *to;
	size_t len, max; /* max: without the NUL */
	bool   full;
};

static inline struct json_text json_text_in(char *to, size_t room)
{
	return (struct json_text){ .to = to, .max = room - 1 };
}

/* Written as it is: brackets, and values that are JSON already. */
void json_text_raw(struct json_text *t, const char *text);
void json_text_key(struct json_text *t, const char *name); /* is not escaped */
void json_text_comma(struct json_text *t);                  /* before an element of an array */

/* Values. Bytes that are not UTF-8 become U+FFFD; NULL is written as null. */
void json_text_string(struct json_text *t, const char *text);
void json_text_integer(struct json_text *t, int64_t value);
void json_text_count_or_null(struct json_text *t, int64_t value); /* a negative value means unknown: null */
void json_text_ms(struct json_text *t, double ms);         /* in milliseconds with at most three decimals; negative: null */
void json_text_bool(struct json_text *t, bool value);

/* Terminates the text and returns its length; 0, and an empty text, when something did not fit. */
size_t json_text_finish(struct json_text *t);
