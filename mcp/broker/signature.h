/*
 * signature.h - a tool's schemas as a line of Python: "(query: str, limit: int = 5) -> dict".
 *
 * Pure. A schema is hostile: the number of steps and of bytes written is bounded, and a $ref is followed within the schema
 * only.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

enum { SIGNATURE_MAX = 600 };

/* malloc'ed; NULL when memory is short. output may be NULL. */
char *signature_make(const json_t *input, const json_t *output);

/* The part of the schema that "#/$defs/x" refers to; NULL: there is none. */
const json_t *schema_follow(const json_t *root, const char *ref);
/* A name that can be written before '=' in a call. */
bool signature_is_identifier(const char *name);
