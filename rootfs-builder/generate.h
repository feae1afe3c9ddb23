/* generate.h - the generators that a recipe can name, for files that no package brings */
#pragma once
#include "err.h"

struct generator_use {
	int         root; /* of the tree */
	int         log, stop; /* for generators that run a program */
	const char *path; /* of the file to make */
};

struct generator {
	const char *name;
	int (*make)(const struct generator_use *use, const char *text, struct err *e);
	const char *text; /* the file's content, if it is always the same */
	const char *doc;
};
extern const struct generator generators[]; /* the last has no name */

const struct generator *generator_find(const char *name); /* or NULL */
