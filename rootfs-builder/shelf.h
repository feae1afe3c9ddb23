/*
 * shelf.h - the store, seen by those who put trees into it and take them out.
 *
 * Publishing and collecting both hold the lock of trees/, so that neither sees
 * the other half-way. Users of a tree need only the tree's own lock (store.h).
 */
#pragma once
#include "recipe.h"
#include "workspace.h"

struct shelf {
	int  dir;
	char path[1024]; /* absolute */
};
#define SHELF_NONE ((struct shelf){ .dir = -1 })

/* Makes what is missing of it, 0755. */
must_use int shelf_make(const char *path, struct shelf *ret, struct err *e);
/* Kind MISSING when there is no store yet. */
must_use int shelf_open(const char *path, struct shelf *ret, struct err *e);
void         shelf_close(struct shelf *s);
#define scoped_shelf scoped(shelf_close) struct shelf

/* trees/, exclusively locked. */
must_use int shelf_lock(const struct shelf *s, struct err *e);

/*
 * The workspace becomes trees/DIGEST and names/NAME points at it. When that
 * tree is there already and sound, the workspace stays (and is removed by its
 * owner) and the tree gains the recipe. All data is on the disk before it has
 * a name.
 */
must_use int shelf_publish(const struct shelf *s, struct workspace *w, const char *digest, const struct recipe *r, struct err *e);

/* Remembers, or asks, whether this recipe led to this tree. */
must_use int shelf_mark(int tree_dir, const char *recipe_sha256, struct err *e);
bool         shelf_is_marked(const struct shelf *s, const char *digest, const char *recipe_sha256);

/* Every name, or every tree, sorted. */
struct shelf_name {
	char name[64];
	char digest[DIGEST_HEX + 1]; /* empty when the link is not one of ours */
};
struct shelf_names {
	struct shelf_name *name;
	size_t             n;
};
must_use int shelf_names(const struct shelf *s, struct shelf_names *ret, struct err *e);
must_use int shelf_trees(const struct shelf *s, struct shelf_names *ret, struct err *e); /* name is empty */
void         shelf_names_done(struct shelf_names *n);
#define scoped_shelf_names scoped(shelf_names_done) struct shelf_names
