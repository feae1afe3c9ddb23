/*
 * wheels.h - the wheels of a recipe: found before a build begins, installed by pip in the tree.
 *
 * The content of a wheel is not trusted, whatever its hash. pip comes from the
 * suite; it runs with the tree's Python in the tree, without rights or a
 * network, and executes nothing of the wheel. If the wheels come from an index,
 * pip fetches them first, in the same way but with a network.
 */
#pragma once
#include "recipe.h"
#include "requirements.h"
#include "tree.h"

struct wheels {
	const struct recipe *recipe; /* borrowed */
	struct requirements  asked;
	char               **file; /* owned: paths of wheels in the recipe's folder */
	size_t               n;
};

/* Reads the requirements, if there are any, and adds them to the recipe's digest. */
must_use int wheels_load(struct wheels *ret, struct recipe *r, struct err *e);
/* If there is a folder of wheels: finds a file with one of the hashes for each requirement. One with a marker may have
 * none. */
must_use int wheels_find(struct wheels *w, struct err *e);
/* Installs the wheels, and adds them to packages. */
must_use int wheels_apply(const struct wheels *w, int root, json_t *packages, int log, int stop, struct err *e);
/*
 * Adds {"name", "version"} to packages if the entry is the directory "NAME-VERSION.dist-info" of an installed package,
 * and its path begins with `below`.
 */
must_use int wheels_add_installed_package(const struct tree_entry *entry, const char *below, json_t *packages,
					  struct err *e);
void         wheels_done(struct wheels *w);
