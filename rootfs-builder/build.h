/* build.h - makes a tree in the store from a recipe, or from a system made elsewhere: the tables of stages */
#pragma once
#include "digest.h"
#include "recipe.h"

struct build_options {
	const char *store;
	const char *recipes; /* the folder of recipes */
	const char *recipe; /* a name, or a file; for an import, the name of the tree */
	const char *guest; /* the folder of the files that run inside jails */
	const char *sources; /* a file of apt sources, or NULL: the machine's */
	bool        force;
	int         stop; /* a signalfd; the caller's */
	const char *source; /* for an import: the directory, archive or image */
	uint64_t    size_max; /* for an import: bytes */
};
#define BUILD_IMPORT_MAX (64 * GIB)
/* Writes progress to stderr and, on failure, the end of the log. errnum is ECANCELED when a signal ended it. */
must_use int build_from_recipe(const struct build_options *o, struct err *e);
/* The same for a system made elsewhere: see import.h. A name that the store has already is reused only with `force`. */
must_use int build_from_import(const struct build_options *o, struct err *e);
/*
 * A layer of packages, from an archive that came out of a jail: recipe is its key (store.h), source the archive. A
 * layer of that key is replaced.
 */
must_use int build_layer(const struct build_options *o, struct err *e);
