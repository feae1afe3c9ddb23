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
 * What the tree is: of an import, programs that lack a library are only counted, and are no error. A layer of packages
 * is no rootfs: it needs neither libraries nor the places that a cell mounts over.
 */
enum lint_kind { LINT_ROOTFS, LINT_IMPORT, LINT_LAYER };

/*
 * Findings go to `out`, at most LINT_SHOWN of them; the error counts them all.
 */
must_use int lint_tree(int root, enum lint_kind kind, FILE *out, struct err *e);
void         lint_print_rules(FILE *out);
