/*
 * tool_schema.h - the JSON schemas of a tool: arguments checked by one, and both as a line of Python.
 *
 * Pure. A schema is hostile: the number of steps and of bytes written is bounded, and a $ref is followed within the
 * schema only.
 */
#pragma once
#include "err.h"

#include <jansson.h>

/*
 * Checks types, required and unknown keys, and enumerations, through arrays, objects and $ref. Regular expressions,
 * formats and combinations (anyOf, allOf, ...) are left to the server: a hostile schema could make them take for ever.
 * What is beyond the bound of steps does not pass. arguments: an object. 0, or -1 with *e, which names the argument:
 * "limit: expected integer".
 */
must_use int argument_check(const json_t *arguments, const json_t *schema, struct err *e);

enum { SIGNATURE_MAX = 600 };

/* "(query: str, limit: int = 5) -> dict"; malloc'ed; NULL when memory is short. output may be NULL. */
char *signature_make(const json_t *input, const json_t *output);

/* A name that can be written before '=' in a call. */
bool signature_is_identifier(const char *name);
