/* verify.h - checks that a tree of the store still has the content that its name stands for */
#pragma once
#include "tree_store.h"

#include <stdio.h>

#define VERIFY_SHOWN 20

/* Hashes everything again. Differences go to `out`, at most VERIFY_SHOWN; the error counts them all. */
must_use int verify_tree(const struct tree_store *s, const char *digest, FILE *out, struct err *e);
