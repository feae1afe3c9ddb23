/*
 * fuzz.h - what every fuzz target wants from its parser.
 *
 * A target is one function: bytes in, abort() when a promise is broken. Under
 * libFuzzer it meets new bytes (./dev fuzz), under replay.c those of the corpus
 * (./dev test).
 */
#pragma once
#include "err.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define must(promise) ((promise) ? (void)0 : broken(__FILE__, __LINE__, #promise, ""))
/* The same about a text, which is shown. */
#define must_about(text, promise) ((promise) ? (void)0 : broken(__FILE__, __LINE__, #promise, text))

_Noreturn static inline void broken(const char *file, int line, const char *promise, const char *about)
{
	fprintf(stderr, "%s:%d: promise broken: %s%s%s\n", file, line, promise, *about ? ", about: " : "", about);
	abort();
}

/* A refusal says why: one line of text that a terminal and a JSON record can hold. */
static inline void must_say_why(const struct err *e)
{
	must(e->kind != ERR_NONE && e->kind != ERR_BROKEN);
	must(*e->text && strlen(e->text) < sizeof e->text);
	must_about(e->text, text_is_plain(e->text));
}

/* The bytes up to the first NUL, or all; *data and *size move behind it. The caller frees. */
static inline char *take_text(const uint8_t **data, size_t *size)
{
	size_t n    = strnlen((const char *)*data, *size);
	char  *text = malloc(n + 1);

	must(text);
	memcpy(text, *data, n);
	text[n] = 0;
	n += n < *size;
	*data += n;
	*size -= n;
	return text;
}
