/*
 * fit.h - the tree of a system made elsewhere becomes one that a cell can be built on.
 *
 * Nothing of it is taken away but links that lead to nothing. What it lacks is
 * made: see usr_merge.h and mount_points.h, a few files below /etc, and the
 * name by which a cell starts Python.
 */
#pragma once
#include "recipe.h"

must_use int fit_apply(int root, int log, int stop, struct err *e);
bool         fit_has_python(int root);
/* The tree's directories of Python files, as rows of "compile"; new reference. NULL with *e. */
must_use json_t *fit_find_modules(int root, struct err *e);
