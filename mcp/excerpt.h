/*
 * excerpt.h - of a long text its beginning and its end, and an exact sentence about the rest.
 *
 * Never cut inside a character; what is said to be shown is what is shown.
 */
#pragma once
#include "defs.h"

#include <stdio.h>

struct excerpt {
	const char *head; /* clean text (clean.h); all of it, unless there is a tail */
	size_t      head_len;
	const char *tail; /* the end of what was written, where more was than was kept; NULL: head is all */
	size_t      tail_len;
	uint64_t    bytes; /* that were written, when there is a tail */
};

enum { EXCERPT_LEAST = 256 };

/* Prints at most max bytes, max >= EXCERPT_LEAST. */
void excerpt_print(FILE *out, const struct excerpt *x, size_t max);

/* Bytes that it would take without a cut; more than any max when something is missing already. */
size_t excerpt_wants(const struct excerpt *x);
