/* http_line.h - lines of the head of an HTTP/1 message, read strictly: what two parsers could read in two ways is refused */
#pragma once
#include "span.h"

bool http_is_token(struct span s);   /* RFC 9110, 5.6.2 */
bool http_is_value(struct span s);   /* RFC 9110, 5.5: a tab, what is visible, and bytes above ASCII */
bool http_list_has(struct span list, const char *word);

/* Takes the line up to CR LF, and drops these. 1: a line; 0: its end is not there yet; -1: CR or LF alone, or a NUL. */
int http_take_line(struct span *rest, struct span *line);
/* NULL, or what is wrong with the line of a header. */
const char *http_take_header(struct span line, struct span *name, struct span *value);
/* Digits alone, and at most INT64_MAX. */
bool http_take_length(struct span value, uint64_t *ret);

/* The smaller one: of the bytes that a message still has, and of those that there are, or have room. */
static inline size_t http_least(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}
