/* populate.h - makes what no package brings: the places that a cell needs, and directories, links and generated files
 */
#pragma once
#include "recipe.h"

must_use int populate_apply(int root, const struct recipe *r, int log, int stop, struct err *e);
