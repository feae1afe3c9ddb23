/*
 * signature.h - a tool's schemas as a line of Python: "(query: str, limit: int = 5) -> dict".
 *
 * Pure. A schema is hostile: so many steps are taken and so many bytes written,
 * whatever it says; a $ref is followed within the schema only.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

enum { SIGNATURE_MAX = 600 };

/* malloc'ed; NULL when memory is short. output may be NULL. */
char *signature_make(const json_t *input, const json_t *output);

/* What "#/$defs/x" stands for in the schema; NULL: nothing in it. */
const json_t *schema_follow(const json_t *root, const char *ref);
/* A name that can be written before '=' in a call. */
bool signature_is_word(const char *name);
