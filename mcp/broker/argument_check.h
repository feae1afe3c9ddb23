/*
 * argument_check.h - do arguments look like what a tool's schema says?
 *
 * Checks types, required and unknown keys, and enumerations, through arrays, objects and $ref within the schema. Regular
 * expressions, formats and combinations (anyOf, allOf, ...) are left to the server: a hostile schema could make them take for
 * ever. Pure. The number of steps is bounded; what was not checked by then passes.
 */
#pragma once
#include "err.h"

#include <jansson.h>

/* arguments: an object. 0, or -1 with *e, which names the argument: "limit: expected integer". */
must_use int argument_check(const json_t *arguments, const json_t *schema, struct err *e);
