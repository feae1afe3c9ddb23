/* build.h - a recipe, or a system made elsewhere, becomes a tree in the store: the tables of stages */
#pragma once
#include "digest.h"
#include "recipe.h"

struct build_options {
	const char *store;
	const char *recipes; /* the folder of recipes */
	const char *recipe; /* a name, or a file; of an import, the name */
	const char *guest; /* the folder of what runs inside jails */
	const char *sources; /* a file, or NULL: the machine's */
	bool        force;
	int         stop; /* a signalfd */
	const char *source; /* of an import */
	uint64_t    size_max; /* likewise */
};
#define BUILD_IMPORT_MAX (64 * GIB)
/* Progress and, when it fails, the end of the log go to stderr. errnum is ECANCELED when a signal ended it. */
must_use int build_run(const struct build_options *o, struct err *e);
/* The same for a system made elsewhere: see import.h. A name that the store has is taken over only with `force`. */
must_use int build_import(const struct build_options *o, struct err *e);
