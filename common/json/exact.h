/*
 * exact.h - JSON text in which each number keeps its value with as few digits as possible.
 *
 * jansson writes all reals with the same number of digits: with 15, some read as
 * another double, and with 17, 0.41 becomes 0.40999999999999998. Here each real
 * gets the fewest of 15 to 17 digits that read as the same double.
 */
#pragma once
#include "defs.h"

#include <jansson.h>

/* Like json_dumps(), with its flags except the precision; malloc'ed, NULL when memory is short. */
char *json_dump_exact(const json_t *value, size_t flags, size_t *len);
