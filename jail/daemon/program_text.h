/*
 * program_text.h - a stranger's descriptor that should be a Python program.
 *
 * Never read(), which would move an offset that somebody else has too: a sealed
 * memory file cannot change or shrink under us, and nobody waits for one. What
 * is short is copied, what is long is mapped.
 */
#pragma once
#include "denial.h"

struct program_text {
	char  *text; /* NULL: there is none */
	size_t len;
	bool   is_mapped;
};

/* Sealed, from 1 byte to 8 MiB, UTF-8 without NUL. */
must_use int program_text_open(struct program_text *ret, int fd, struct denial *why);
void         program_text_close(struct program_text *t); /* may be called twice */
