/* nearest.h - how far apart two words are, to suggest the known word that a misspelled one may mean. Pure. */
#pragma once
#include "defs.h"

#define NEAREST_FAR 4 /* from this distance on, neither word is a suggestion for the other */

/* Letters to insert, delete, replace or swap with their neighbour; NEAREST_FAR if they are many for words of this length. '-' equals '_', and case does not matter. */
unsigned nearest_distance(const char *a, const char *b);
