/*
 * lines.h - bytes as they come become lines: the framing of stdio.
 *
 * Pure. A line ends with \n or \r\n; empty ones and byte order marks are
 * passed over. A line longer than allowed is told once, as soon as it is, and
 * the rest of it is thrown away up to its newline.
 */
#pragma once
#include "defs.h"

struct lines {
	size_t max;        /* of one line; set by the owner */
	char  *data;
	size_t cap, begin, end; /* what was read and not given out: [begin, end) */
	size_t seen;       /* of it, without a newline for sure */
	bool   skips;      /* the rest of a line that was too long */
};

enum lines_next { LINES_NONE, LINES_LINE, LINES_TOO_LONG };

/* Room for at least `wanted` more bytes, or NULL: memory is short. Then: so many were written there. */
must_use char *lines_room(struct lines *l, size_t wanted);
void           lines_filled(struct lines *l, size_t n);

/* The next line, without its newline; valid until the next lines_room(). */
must_use enum lines_next lines_next(struct lines *l, const char **ret, size_t *len);
/* No more bytes come: what has no newline is a line, too. */
must_use enum lines_next lines_last(struct lines *l, const char **ret, size_t *len);
void                     lines_done(struct lines *l);
