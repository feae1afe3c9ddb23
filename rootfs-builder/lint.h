/*
 * lint.h - checks a tree before it may become the / of a jail.
 *
 * A table of rules, each of which checks one entry. Every finding is one line;
 * the tree passes when there is none.
 */
#pragma once
#include "err.h"

#include <stdio.h>

#define LINT_SHOWN 20

/*
 * Findings go to `out`, at most LINT_SHOWN of them; the error counts them all. Of an import, programs that lack a
 * library are only counted, and are no error.
 */
must_use int lint_tree(int root, bool is_import, FILE *out, struct err *e);
void         lint_print_rules(FILE *out);
