/* verify.h - checks that a tree of the store still has the content that its name says */
#pragma once
#include "shelf.h"

#include <stdio.h>

#define VERIFY_SHOWN 20

/* Hashes everything again. Differences go to `out`, at most VERIFY_SHOWN; the error counts them all. */
must_use int verify_tree(const struct shelf *s, const char *digest, FILE *out, struct err *e);
