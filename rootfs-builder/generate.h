/* generate.h - files of a rootfs that no package brings: the makers a recipe can name */
#pragma once
#include "err.h"

struct generator_use {
	int         root; /* of the tree */
	int         log, stop; /* for makers that run a program */
	const char *path; /* where the file goes */
};

struct generator {
	const char *name;
	int (*make)(const struct generator_use *use, const char *text, struct err *e);
	const char *text; /* the file, for those that always write the same */
	const char *doc;
};
extern const struct generator generators[]; /* the last has no name */

const struct generator *generator_find(const char *name); /* or NULL */
