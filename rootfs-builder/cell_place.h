/*
 * cell_place.h - what a tree must have for a cell to stand in it: the places that a cell mounts something over.
 *
 * A cell creates nothing in its rootfs and follows no link there, so each place
 * is in the tree, empty, as a directory or a file of its own. The list is the
 * mount plan's.
 */
#pragma once
#include "tree.h"

#define CELL_PLACE_WORDS 300

/* Makes what is missing; whatever is there stays, and is lint's to judge. */
must_use int cell_places_make(int root, struct err *e);

struct cell_place {
	char           path[32];
	enum tree_type type; /* TREE_DIR or TREE_FILE */
};
struct cell_places {
	struct cell_place place[40];
	size_t            n;
};
must_use int cell_places_list(struct cell_places *ret, struct err *e);
/* Does this link lead to what only a cell has: into /proc, or to its terminals? In the tree it leads to nothing. */
bool cell_place_is_led_to(const struct tree_entry *link);
/* False, and words on what is there instead and what to type, when the tree has no such place. */
bool cell_place_is_there(const struct cell_place *p, const struct tree *t, char why[CELL_PLACE_WORDS]);
