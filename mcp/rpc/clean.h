/*
 * clean.h - what a jail has written, as a text that a client and its model can be shown.
 *
 * Bytes that are not UTF-8 become U+FFFD. Terminal escapes are removed, and control characters except newline, tab and carriage
 * return, unless keep_escapes is set. NUL is always removed. Pure.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

/* malloc'ed, NUL-terminated; NULL when memory is short. */
char *clean_text(const void *bytes, size_t len, bool keep_escapes, size_t *ret_len);
/* The same without escapes, as a text of JSON; a new reference. NULL when memory is short. */
json_t *clean_text_to_json(const char *bytes, size_t len);

/*
 * Leaves of each line what a carriage return has not overwritten: of a progress bar, its last state. In place; returns the new
 * length.
 */
size_t clean_drop_overwritten(char *text, size_t len);

/* The length of the bytes without a last character that was cut off. */
size_t clean_whole_characters(const char *bytes, size_t len);
/* The largest n <= max at which the text may be cut: not inside of a character. */
size_t clean_cut_length(const char *text, size_t len, size_t max);
/* The smallest n >= from that is not inside a character. */
size_t clean_next_boundary(const char *text, size_t len, size_t from);

/*
 * The length of the longest prefix, in whole characters, that takes at most `max` bytes when it is escaped twice: in a JSON
 * text that is itself a JSON string.
 */
size_t clean_fit_escaped(const char *text, size_t len, size_t max);
