/*
 * bytes.h - numbers of a message from the network, never beyond its end
 *
 * After a read beyond the end nothing is left, has_failed is set, and every further read gives 0:
 * a parser may read on and look at it once.
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
	if (n) /* a part that failed is at NULL, to which not even 0 may be added */
		b->at += n;
	b->left -= n;
	return at;
}

/* Network order, of 1 to 4 bytes. */
static inline uint32_t take_number(struct bytes_left *b, size_t n)
{
	const uint8_t *at = take_bytes(b, n);
	uint32_t       x  = 0;

	for (size_t i = 0; at && i < n; i++)
		x = x << 8 | at[i];
	return x;
}

/* A part that says its own length in n bytes. */
static inline struct bytes_left take_part(struct bytes_left *b, size_t n)
{
	struct bytes_left part = { .left = take_number(b, n) };

	part.at = take_bytes(b, part.left);
	if (!part.at)
		part.left = 0;
	part.has_failed = b->has_failed;
	return part;
}
