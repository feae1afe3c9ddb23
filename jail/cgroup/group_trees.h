/*
 * group_trees.h - which control group hierarchies this host has.
 *
 * libcgroup finds them, which takes half a millisecond (m), so the answer is
 * kept in the runtime directory. What is kept is only a hint: each use opens
 * the directory and asks the kernel what it is, and a hint that is wrong is
 * thrown away and found anew.
 */
#pragma once
#include "group.h"

struct group_trees {
	struct group_tree {
		char     mount[GROUP_PATH_MAX];
		char     root[GROUP_PATH_MAX]; /* the part of the hierarchy that is mounted there: in a container not all of it */
		bool     v2;
		unsigned controllers; /* bits of enum group_controller */
	} tree[GROUP_TREES_MAX];
	size_t n;
	char   own[4096]; /* /proc/self/cgroup */
};

void group_trees_find(struct group_trees *ret, const char *cache_dir);

/*
 * The group `name`, made when it is missing: on v1 below our own group, on v2 where group_place.h says. Fills
 * base_fd, controllers and borrowed of the leaf-to-be. On v2 controllers are switched on for leaves, and those
 * that could not be are left out. -1 when nothing is usable.
 */
must_use int group_trees_open_below(const struct group_trees *t, size_t i, const char *name, struct group_leaf *leaf);
