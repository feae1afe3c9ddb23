/*
 * shelf.h - the store, for the code that adds and removes trees.
 *
 * Publishing and garbage collection both hold the lock of trees/, so that
 * neither sees the other's work half done. A process that uses a tree needs only
 * the tree's own lock (store.h).
 */
#pragma once
#include "recipe.h"
#include "workspace.h"

struct shelf {
	int  dir;
	char path[1024]; /* absolute */
};
#define SHELF_NONE ((struct shelf){ .dir = -1 })

/* Opens the store, after making what is missing of it and of the directories above it. */
must_use int shelf_make(const char *path, struct shelf *ret, struct err *e);
/* Kind MISSING when there is no store yet. */
must_use int shelf_open(const char *path, struct shelf *ret, struct err *e);
void         shelf_close(struct shelf *s);
#define scoped_shelf scoped(shelf_close) struct shelf

/* Opens trees/ and locks it exclusively; the descriptor is the caller's. */
must_use int shelf_lock(const struct shelf *s, struct err *e);

/*
 * Renames the workspace to trees/DIGEST, and points names/NAME at it. When that
 * tree exists already and is sound, the workspace stays (its owner removes it)
 * and the tree is marked with the recipe. All data is on the disk before it has
 * a name.
 */
must_use int shelf_publish(const struct shelf *s, struct workspace *w, const char *digest, const struct recipe *r, struct err *e);

/* Records in the tree's directory that this recipe made it; asks whether it did. */
must_use int shelf_mark(int tree_dir, const char *recipe_sha256, struct err *e);
bool         shelf_is_marked(const struct shelf *s, const char *digest, const char *recipe_sha256);

/* All names, or all trees, sorted. */
struct shelf_name {
	char name[64];
	char digest[DIGEST_HEX + 1]; /* empty when the link does not point to a tree */
};
struct shelf_names {
	struct shelf_name *name;
	size_t             n;
};
must_use int shelf_names(const struct shelf *s, struct shelf_names *ret, struct err *e);
must_use int shelf_trees(const struct shelf *s, struct shelf_names *ret, struct err *e); /* name is empty */
void         shelf_names_done(struct shelf_names *n);
#define scoped_shelf_names scoped(shelf_names_done) struct shelf_names
