/*
 * wire.h - parses the bytes of a message into one JSON object.
 *
 * The size is checked before the content. Duplicate keys, trailing bytes, NUL in
 * texts and nesting deeper than WIRE_DEPTH are refused.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define WIRE_MAX   (64 * 1024)
#define WIRE_DEPTH 32

/* The number of the first line that nests deeper than depth_max, or 0. For callers that use another parser or other bounds. */
must_use unsigned wire_find_too_deep(const char *bytes, size_t len, unsigned depth_max);

/*
 * Estimates the memory that the parsed message takes: "{}," has three bytes, and
 * takes 250 when parsed. A list or an object weighs four, another value one; the
 * parsed message takes at most about WIRE_WEIGHT_BYTES for each unit of weight.
 */
#define WIRE_WEIGHT_BYTES 64
must_use size_t wire_memory_weight(const char *bytes, size_t len);

must_use json_t *wire_parse(const void *bytes, size_t len, size_t max, struct err *e); /* new reference, or NULL */

/* Allows NUL in texts, which then need json_string_length(); a key with NUL is refused. */
must_use json_t *wire_parse_with_nul(const void *bytes, size_t len, size_t max, struct err *e);

static inline void wire_freep(json_t **j)
{
	json_decref(*j);
}
#define scoped_json scoped(wire_freep) json_t
