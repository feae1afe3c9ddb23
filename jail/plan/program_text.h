/*
 * program_text.h - the text of a Python program, from a descriptor that a client sent.
 *
 * Only sealed memory files are accepted: they cannot change or shrink, and reading them
 * never waits. Short texts are copied with pread(), long ones are mapped; read() would
 * move the file offset, which the client shares.
 */
#pragma once
#include "denial.h"

struct program_text {
	char  *text; /* NULL: there is none */
	size_t len;
	bool   is_mapped;
};

/* fd, borrowed: sealed, from 1 byte to 8 MiB, UTF-8 without NUL. */
must_use int program_text_open(struct program_text *ret, int fd, struct denial *why);
void         program_text_close(struct program_text *t); /* may be called twice */
