/*
 * guest.h - puts the guest runner, which executes programs inside a jail, into every tree that has a Python: its Python
 * files, and guest.pyc, which the tree's own interpreter makes from them.
 */
#pragma once
#include "recipe.h"

struct guest_file {
	char  *name; /* "value.py" */
	void  *bytes;
	size_t len;
};

struct guest {
	struct guest_file file[32]; /* sorted by name */
	size_t            n;
};

/* All *.py of a folder. */
must_use int guest_load(struct guest *ret, const char *folder, struct err *e);
void         guest_done(struct guest *g);
/* Adds the files to the recipe's digest, because another runner makes another tree. */
must_use int guest_add_to_digest(const struct guest *g, struct recipe *r, struct err *e);
/* Does nothing to a tree without a Python, which could not execute the runner. */
must_use int guest_apply(int root, const struct guest *g, int log, int stop, struct err *e);
