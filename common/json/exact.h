/*
 * exact.h - JSON text in which every number is what it was, and no longer than it must be.
 *
 * jansson writes so many digits: with 15 a double is another one when it is
 * read again, with 17 0.41 becomes 0.40999999999999998. Here each real has the
 * fewest of 15 to 17 digits that read as the same double.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

/* As json_dumps(), with its flags but for the precision; malloc'ed, NULL when memory is short. */
char *exact_dump(const json_t *value, size_t flags, size_t *len);
