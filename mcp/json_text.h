/*
 * json_text.h - JSON as text, with numbers as short as they can be.
 *
 * jansson prints all reals with the same number of digits: either 0.1 becomes
 * 0.10000000000000001, or 0.1 + 0.2 becomes 0.3. Here each has as many as it
 * needs, as Python prints it, and stays a real: 3.0.
 */
#pragma once
#include <jansson.h>

/* One line, malloc'ed; NULL when memory is short. */
char *json_text(const json_t *value);
