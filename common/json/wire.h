/*
 * wire.h - bytes become one JSON object, or one reason why not.
 *
 * Size before content; duplicate keys, trailing bytes, NUL in text and nesting
 * deeper than WIRE_DEPTH are refused before anything looks at the object.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define WIRE_MAX   (64 * 1024)
#define WIRE_DEPTH 32

/* The first line that nests deeper, or 0: for who parses with bounds of his own. */
must_use unsigned wire_find_too_deep(const char *bytes, size_t len, unsigned depth_max);

/*
 * What a message of few bytes may cost in memory: "{}," is three, and 250 once
 * it was read. A list or an object counts four, another value one; what was
 * read has at most about WIRE_WEIGHT_BYTES for each.
 */
#define WIRE_WEIGHT_BYTES 64
must_use size_t wire_weight(const char *bytes, size_t len);

must_use json_t *wire_parse(const void *bytes, size_t len, size_t max, struct err *e); /* new reference, or NULL */

/* The same, where text may hold NUL: it has a length. No key has one. */
must_use json_t *wire_parse_with_nul(const void *bytes, size_t len, size_t max, struct err *e);

static inline void wire_freep(json_t **j)
{
	json_decref(*j);
}
#define scoped_json scoped(wire_freep) json_t
