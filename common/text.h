/*
 * text.h - words, numbers and sizes as people write them.
 *
 * Every parser here is strict: the whole text or nothing, no sign, no blanks,
 * no left-over, no wrap-around (crun's CVE-2026-30892 was a lax one). They
 * return 0 and set *ret, or -1 and leave it alone.
 */
#pragma once
#include "defs.h"

#include <string.h>

static inline bool begins_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

must_use int text_to_u64(const char *text, uint64_t *ret);      /* "64" */
must_use int text_to_size(const char *text, uint64_t *ret);     /* "64M", "1G", "4096": 1024-based K M G T, optional B or iB */
must_use int text_to_milli(const char *text, uint64_t *ret);    /* "0.5" -> 500, at most three decimals */
must_use int text_to_duration_ms(const char *text, uint64_t *ret); /* "30", "1.5s", "250ms", "2m", "1h", "1d"; seconds when there is no unit */

/* Shortest exact form: 67108864 -> "64M", 1500 -> "1.5". Return buf. */
char *text_from_size(uint64_t bytes, char *buf, size_t len);
char *text_from_milli(uint64_t milli, char *buf, size_t len);

/* Plain name of a profile, rootfs or mount: [a-z0-9] then [a-z0-9._-], at most 63 bytes, no "..". */
bool text_is_name(const char *text);
/* Name of a Python module, ASCII only: "os.path"; at most 100 bytes. */
bool text_is_module(const char *text);
bool text_is_utf8(const void *bytes, size_t len);
bool text_ends_in(const char *text, const char *tail); /* with something before it */
int  text_hex_digit(char c); /* 0 to 15, of either case; -1: it is another character */
static inline bool text_has_terminator(const char *text, size_t size) /* a terminating zero within size bytes */
{
	return memchr(text, 0, size) != NULL;
}
bool text_has_control(const char *text); /* any byte below 0x20, or 0x7f */
bool text_is_visible_ascii(const char *text); /* no blanks either */
bool text_is_identifier_letter(char c); /* a letter of ASCII, or '_' */
void text_put_hex(const unsigned char *bytes, size_t n, char *ret); /* 2 * n digits and NUL */

/* Valid UTF-8 without characters that a terminal obeys: controls (C1 too), separators of lines, changes of direction. */
bool text_is_plain(const char *text);
/* In place: replaces each byte of all other characters by '?'. The result is safe for a terminal and for JSON. */
void text_make_plain(char *text);

/* A copy with every byte that is not UTF-8 replaced by U+FFFD; malloc'ed, NULL when memory is short. */
char *text_as_utf8(const void *bytes, size_t len, size_t *ret_len);
