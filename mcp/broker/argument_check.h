/*
 * argument_check.h - do arguments look like what a tool's schema says?
 *
 * Types, required and unknown keys, enumerations; through arrays, objects and
 * $ref within the schema. Never regular expressions, formats and combinations:
 * those are the server's to judge, and could be made to take for ever. Pure;
 * so many steps are taken, and what is left then passes.
 */
#pragma once
#include "err.h"

#include <jansson.h>

/* arguments: an object. 0, or -1 with *e, which names the argument: "limit: expected integer". */
must_use int argument_check(const json_t *arguments, const json_t *schema, struct err *e);
