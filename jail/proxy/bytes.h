/*
 * bytes.h - reads numbers and parts of a message from the network, never beyond its end
 *
 * A read beyond the end sets has_failed and leaves nothing, so that every later number is 0:
 * a parser may read on and check has_failed once, at the end.
 */
#pragma once
#include "defs.h"

struct bytes_left {
	const uint8_t *at;
	size_t         left;
	bool           has_failed;
};

static inline const uint8_t *take_bytes(struct bytes_left *b, size_t n)
{
	const uint8_t *at = b->at;

	if (n > b->left) {
		b->left       = 0;
		b->has_failed = true;
		return NULL;
	}
	if (n) /* "at" is NULL in a part that failed, and adding even 0 to NULL is undefined */
		b->at += n;
	b->left -= n;
	return at;
}

/* A number of 1 to 4 bytes, in network order. */
static inline uint32_t take_number(struct bytes_left *b, size_t n)
{
	const uint8_t *at = take_bytes(b, n);
	uint32_t       x  = 0;

	for (size_t i = 0; at && i < n; i++)
		x = x << 8 | at[i];
	return x;
}

/* A part that begins with its own length, a number of n bytes. */
static inline struct bytes_left take_part(struct bytes_left *b, size_t n)
{
	struct bytes_left part = { .left = take_number(b, n) };

	part.at = take_bytes(b, part.left);
	if (!part.at)
		part.left = 0;
	part.has_failed = b->has_failed;
	return part;
}
