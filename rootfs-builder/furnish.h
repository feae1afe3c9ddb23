/* furnish.h - puts into the tree what no package brings: what a cell needs, directories, links, generated files */
#pragma once
#include "recipe.h"

must_use int furnish_apply(int root, const struct recipe *r, int log, int stop, struct err *e);
