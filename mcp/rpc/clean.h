/*
 * clean.h - what a jail has written, as a text that a client and its model can be shown.
 *
 * Bytes that are no UTF-8 become U+FFFD. Unless they are asked for, terminal
 * escapes go, and control characters but newline, tab and carriage return;
 * NUL always goes. Pure.
 */
#pragma once
#include "defs.h"

/* malloc'ed, NUL-terminated; NULL when memory is short. */
char *clean_text(const void *bytes, size_t len, bool keep_escapes, size_t *ret_len);

/* How many of the bytes are whole characters, where the last one may have been cut off. */
size_t clean_whole(const char *bytes, size_t len);
/* The largest n <= max at which the text may be cut: not inside of a character. */
size_t clean_cut(const char *text, size_t len, size_t max);
/* The smallest n >= from at which a rest may begin. */
size_t clean_begin(const char *text, size_t len, size_t from);

/* As many bytes of the text, whole characters, as take at most `max` in a JSON text that is itself a string of JSON. */
size_t clean_fit(const char *text, size_t len, size_t max);
