/*
 * guest.h - the program that runs others inside a jail: its Python files and guest.pyc, which the tree's own interpreter makes
 * of them, go into every tree that has a Python.
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
/* Another runner makes another tree: it becomes a part of what the recipe is. */
must_use int guest_join(const struct guest *g, struct recipe *r, struct err *e);
/* A tree without a Python stays as it is: nobody in it could run the program. */
must_use int guest_apply(int root, const struct guest *g, int log, int stop, struct err *e);
