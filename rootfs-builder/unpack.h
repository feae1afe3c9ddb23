/*
 * unpack.h - Debian packages become a tree, by mmdebstrap.
 *
 * Packages are extracted, not installed: no maintainer script runs. What the
 * scripts would have done are rows of the recipe.
 */
#pragma once
#include "recipe.h"
#include "sources.h"

#define UNPACK_PLACE "unpack"

struct unpack {
	const struct recipe  *recipe;
	const struct sources *sources;
	const char           *place; /* work/UNPACK_PLACE as an absolute path; it does not exist yet */
	int                   work;  /* a directory for files of ours; the tree becomes work/tree */
	int                   log, stop;
};

must_use int unpack_apply(const struct unpack *u, struct err *e);
/*
 * [{"name","version"}], sorted, from the archives that unpack_apply() left in
 * the tree; then removes these and all traces of this machine.
 */
must_use json_t *unpack_packages(int root, struct err *e);
