/*
 * lines.h - splits a stream of bytes into lines: the framing of stdio.
 *
 * Pure. A line ends with \n or \r\n; empty lines and byte order marks are skipped. A line that is too long is reported as soon as it
 * is over the limit, and again at its end; the id of the message that it was is looked for, the rest of it is discarded.
 */
#pragma once
#include "id_scan.h"

struct lines {
	size_t max;        /* of one line; set by the owner */
	char  *data;
	size_t cap, begin, end; /* bytes that were read and not returned yet: [begin, end) */
	size_t seen;       /* bytes from begin on that were searched: no newline is among them */
	bool   skips;      /* the rest of a line that was too long */
	struct id_scan id; /* of that line; whole at its end */
};

enum lines_next { LINES_NONE, LINES_LINE, LINES_TOO_LONG, LINES_END_OF_TOO_LONG };

/* Returns room for at least `wanted` bytes, or NULL when memory is short. lines_add_filled(): n bytes were written there. */
must_use char *lines_reserve(struct lines *l, size_t wanted);
void           lines_add_filled(struct lines *l, size_t n);

/* The next line, without its newline; valid until the next lines_reserve(). */
must_use enum lines_next lines_next(struct lines *l, const char **ret, size_t *len);
/* At end of file: the last line, if it has no newline; then the end of one that was too long. */
must_use enum lines_next lines_take_rest(struct lines *l, const char **ret, size_t *len);
void                     lines_done(struct lines *l);
