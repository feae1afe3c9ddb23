/* nearest.h - which of our words may have been meant by one that is none of them. Pure. */
#pragma once
#include "defs.h"

#define NEAREST_FAR 4 /* from here on they are two different words */

/* How many letters must be put in, taken out, changed or swapped with the next; NEAREST_FAR at most. '-' is '_', capitals are small. */
unsigned nearest_distance(const char *a, const char *b);
