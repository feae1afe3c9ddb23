/*
 * adapt.h - adapts the tree of a system made elsewhere, so that a cell can be built on it.
 *
 * Removes links without a target, and entries that are in the way of what is
 * made: see usr_merge.h and mount_points.h; a few files below /etc; and the path
 * by which a cell starts Python.
 */
#pragma once
#include "recipe.h"

must_use int adapt_apply(int root, int log, int stop, struct err *e);
bool         adapt_has_python(int root);
/* The directories of Python modules, as rows of "compile"; a new reference. NULL with *e. */
must_use json_t *adapt_find_modules(int root, struct err *e);
