/* build.h - a recipe becomes a tree in the store: the table of stages */
#pragma once
#include "digest.h"
#include "recipe.h"

struct build_options {
	const char *store;
	const char *recipes; /* the folder of recipes */
	const char *recipe; /* a name, or a file */
	const char *guest; /* the folder of what runs inside jails */
	const char *sources; /* a file, or NULL: the machine's */
	bool        force;
	int         stop; /* a signalfd */
};
/* Progress and, when it fails, the end of the log go to stderr. errnum is ECANCELED when a signal ended it. */
must_use int build_run(const struct build_options *o, struct err *e);
