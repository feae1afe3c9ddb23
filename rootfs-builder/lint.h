/*
 * lint.h - what a tree must be before it may become anybody's /.
 *
 * A table of rules; each looks at one entry. Every finding is one line; the
 * tree passes when there is none.
 */
#pragma once
#include "err.h"

#include <stdio.h>

#define LINT_SHOWN 20

/* Findings go to `out`, at most LINT_SHOWN of them; the error counts them all. */
must_use int lint_tree(int root, FILE *out, struct err *e);
/* The same for an import: a program that lacks a library is counted, and refuses nothing. */
must_use int lint_import(int root, FILE *out, struct err *e);
void         lint_print_rules(FILE *out);
