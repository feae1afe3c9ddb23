/*
 * cell_path.h - the places that a tree must have, because a cell mounts something over them.
 *
 * A cell creates nothing in its rootfs and follows no link there, so each place
 * must be in the tree as an empty directory or file. The list is made from the
 * mount plan.
 */
#pragma once
#include "tree.h"

#define CELL_PLACE_WORDS 300

/* Makes the missing places. An entry that is there stays, even one of the wrong type: lint judges it. */
must_use int cell_paths_make(int root, struct err *e);
/* The same for a tree made elsewhere: replaces an entry of another type, and makes the usual links of /dev. */
must_use int cell_paths_replace(int root, struct err *e);

struct cell_path {
	char           path[32];
	enum tree_type type; /* TREE_DIR or TREE_FILE */
};
struct cell_paths {
	struct cell_path place[40];
	size_t           n;
};
must_use int cell_paths_list(struct cell_paths *ret, struct err *e);
/* Does this link lead into /proc or to the terminals, which exist only in a cell? In the tree its target is missing. */
bool cell_path_is_link_target(const struct tree_entry *link);
/* False when the tree lacks the place: why then has what is there instead, and what to type. */
bool cell_path_check(const struct cell_path *p, const struct tree *t, char why[CELL_PLACE_WORDS]);
