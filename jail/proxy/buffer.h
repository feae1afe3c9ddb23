/* buffer.h - bytes that wait to be parsed or passed on, up to a bound */
#pragma once
#include "defs.h"

#include <stdlib.h>
#include <string.h>

struct buffer {
	char  *at;
	size_t from, len, room; /* the bytes are at[from] to at[len - 1] */
};

static inline size_t buffer_left(const struct buffer *b)
{
	return b->len - b->from;
}

static inline char *buffer_at(const struct buffer *b)
{
	return b->at + b->from;
}

/* Makes room for at least one more byte. False: the buffer holds max bytes already, or there is no memory. */
must_use bool buffer_grow(struct buffer *b, size_t max);
/* Empties the buffer and gives it room for exactly size bytes. False: no memory. */
must_use bool buffer_make(struct buffer *b, size_t size);

static inline void buffer_take(struct buffer *b, size_t n)
{
	b->from += n;
	if (b->from == b->len)
		b->from = b->len = 0;
}

static inline void buffer_free(struct buffer *b)
{
	free(b->at);
	*b = (struct buffer){ 0 };
}
