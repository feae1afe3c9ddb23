/*
 * excerpt.h - the beginning and the end of a long text, and a sentence with how much is left out.
 *
 * It is never cut inside a character.
 */
#pragma once
#include "defs.h"

#include <stdio.h>

struct excerpt {
	const char *head; /* clean text (clean.h); the whole text if there is no tail */
	size_t      head_len;
	const char *tail; /* the end of the text, if more was written than was kept; NULL: head is all */
	size_t      tail_len;
	uint64_t    bytes; /* bytes that were written, if there is a tail */
	const char *file;  /* where all that was kept is; NULL: nowhere */
};

enum { EXCERPT_LEAST = 256 };

/*
 * Prints what costs at most max, max >= EXCERPT_LEAST, and not more bytes. A cost is what a text takes of a model's
 * tokens: a byte costs one, a digit three, as tokens have some four letters, but one to three digits.
 */
void excerpt_print(FILE *out, const struct excerpt *x, size_t max);

/* What it costs without a cut; larger than any max if a part was not kept. */
size_t excerpt_full_cost(const struct excerpt *x);
