/* prune.h - removes from the tree what the recipe's rows name */
#pragma once
#include "recipe.h"

/*
 * Also removes links whose target is gone. Calls print_unmatched() for a pattern that matched nothing: the recipe is
 * out of date.
 */
must_use int prune_apply(int root, const json_t *rows, void (*print_unmatched)(const char *row), struct err *e);
