/*
 * tree_store.h - the store, for the code that adds and removes trees.
 *
 * Publishing and garbage collection both hold the lock of trees/, so that
 * neither sees the other's work half done. A process that uses a tree needs only
 * the tree's own lock (store.h).
 */
#pragma once
#include "recipe.h"
#include "workspace.h"

struct tree_store {
	int  dir;
	char path[1024]; /* absolute */
};
#define TREE_STORE_NONE ((struct tree_store){ .dir = -1 })

/* Opens the store, after making what is missing of it and of the directories above it. */
must_use int tree_store_make(const char *path, struct tree_store *ret, struct err *e);
/* Kind MISSING when there is no store yet. */
must_use int tree_store_open(const char *path, struct tree_store *ret, struct err *e);
void         tree_store_close(struct tree_store *s);
#define scoped_shelf scoped(tree_store_close) struct tree_store

/* Opens trees/ and locks it exclusively; the descriptor is the caller's. */
must_use int tree_store_lock(const struct tree_store *s, struct err *e);

/*
 * Renames the workspace to trees/DIGEST, and points FOLDER/NAME at it; folder: STORE_NAMES or STORE_LAYERS. When that
 * tree exists already and is sound, the workspace stays (its owner removes it)
 * and the tree is marked with the recipe. All data is on the disk before it has
 * a name.
 */
must_use int tree_store_publish(const struct tree_store *s, struct workspace *w, const char *digest,
				const char *folder, const struct recipe *r, struct err *e);

/* Records in the tree's directory that this recipe made it; asks whether it did. */
must_use int tree_store_mark(int tree_dir, const char *recipe_sha256, struct err *e);
bool         tree_store_is_marked(const struct tree_store *s, const char *digest, const char *recipe_sha256);

/* All names, or all trees, sorted. */
struct tree_store_name {
	char name[64];
	char digest[DIGEST_HEX + 1]; /* empty when the link does not point to a tree */
};
struct tree_store_names {
	struct tree_store_name *name;
	size_t                  n;
};
must_use int tree_store_list_names(const struct tree_store *s, struct tree_store_names *ret, struct err *e);
must_use int tree_store_list_layers(const struct tree_store *s, struct tree_store_names *ret, struct err *e);
/* name is empty */
must_use int tree_store_list_trees(const struct tree_store *s, struct tree_store_names *ret, struct err *e);
void         tree_store_names_done(struct tree_store_names *n);
#define scoped_shelf_names scoped(tree_store_names_done) struct tree_store_names
