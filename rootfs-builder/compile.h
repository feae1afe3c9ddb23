/* compile.h - a .pyc beside every .py, made by the tree's own interpreter */
#pragma once
#include "recipe.h"

/* The recipe's rows; a pattern means every directory that it matches, one at least. What does not compile fails. */
must_use int compile_apply(int root, const struct recipe *r, int log, int stop, struct err *e);
/* What wheels brought below a directory: files for other versions of Python are among that, and stay without. */
must_use int compile_wheels(int root, const char *dir, int log, int stop, struct err *e);
