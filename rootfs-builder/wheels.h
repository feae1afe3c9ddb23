/*
 * wheels.h - what a recipe takes from wheels: found before a build begins, installed by pip in the tree.
 *
 * The content of a wheel is not trusted, whatever its hash: pip is the suite's own,
 * runs with the tree's Python in the tree, without a right or a network, and
 * executes nothing of it. From an index, it fetches first, in the same way but
 * with a network.
 */
#pragma once
#include "recipe.h"
#include "requirements.h"

struct wheels {
	const struct recipe *recipe; /* borrowed */
	struct requirements  asked;
	char               **file; /* of the recipe's folder of wheels */
	size_t               n;
};

/* Reads the requirements, if there are any; they become a part of what the recipe is. */
must_use int wheels_load(struct wheels *ret, struct recipe *r, struct err *e);
/* Each requirement has a file in the folder, with one of its hashes. */
must_use int wheels_find(struct wheels *w, struct err *e);
/* packages gains those that were installed. */
must_use int wheels_apply(const struct wheels *w, int root, json_t *packages, int log, int stop, struct err *e);
void         wheels_done(struct wheels *w);
