/* compile.h - a .pyc beside every .py, made by the tree's own interpreter */
#pragma once
#include "recipe.h"

must_use int compile_apply(int root, const struct recipe *r, int log, int stop, struct err *e);
