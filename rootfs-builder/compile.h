/* compile.h - a .pyc beside every .py, made by the tree's own interpreter */
#pragma once
#include "recipe.h"

/* Compiles the directories of the recipe's rows. A pattern must match at least one. A file that cannot be compiled is
 * an error. */
must_use int compile_apply(int root, const struct recipe *r, int log, int stop, struct err *e);
/* Compiles what wheels brought below a directory. Files that cannot be compiled, as those for other versions of Python,
 * are left as they are. */
must_use int compile_wheels(int root, const char *dir, int log, int stop, struct err *e);
