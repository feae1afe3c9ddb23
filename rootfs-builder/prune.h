/* prune.h - takes out of the tree what the recipe does not want in it */
#pragma once
#include "recipe.h"

/* Also removes links that name nothing any more. A pattern that matched nothing is told through `say`: the recipe is stale. */
must_use int prune_apply(int root, const json_t *rows, void (*say)(const char *row), struct err *e);
