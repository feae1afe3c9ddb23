/*
 * unpack.h - makes a tree from Debian packages, with mmdebstrap.
 *
 * Packages are extracted, not installed: no maintainer script runs. Rows of the
 * recipe do what the scripts would have done.
 */
#pragma once
#include "recipe.h"
#include "sources.h"

#define UNPACK_PLACE "unpack"

struct unpack {
	const struct recipe  *recipe;
	const struct sources *sources;
	const char           *place; /* work/UNPACK_PLACE as an absolute path; it does not exist yet */
	int                   work;  /* the workspace, for the builder's own files; the tree becomes work/tree */
	int                   log, stop;
};

must_use int unpack_apply(const struct unpack *u, struct err *e);
/*
 * Returns [{"name","version"}], sorted, from the archives that unpack_apply()
 * left in the tree; removes these archives and all traces of this machine.
 */
must_use json_t *unpack_list_packages(int root, struct err *e);
