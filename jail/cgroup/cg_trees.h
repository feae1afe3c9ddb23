/*
 * cg_trees.h - which control group hierarchies this host has.
 *
 * libcgroup finds them, which takes half a millisecond, so the answer is
 * cached in the runtime directory. The cache is only a hint: each use checks
 * with statfs() that every mount is a cgroup file system of that version and
 * contains our own group. If one does not, libcgroup is asked again.
 */
#pragma once
#include "cg.h"

struct cg_trees {
	struct cg_tree {
		char     mount[CG_PATH_MAX];
		char     root[CG_PATH_MAX]; /* which group is mounted there; in a container often not "/" */
		bool     v2;
		unsigned controllers; /* bits of enum cg_controller */
	} tree[CG_TREES_MAX];
	size_t n;
	char   own[4096]; /* the text of /proc/self/cgroup */
};

void cg_trees_find(struct cg_trees *ret, const char *cache_dir);

/*
 * Opens the group `name`, and makes it when it is missing: on v1 below our own group, on v2 as in cg_dir.h.
 * Fills base_fd (the caller closes it), controllers and borrowed of *leaf. On v2 it switches controllers on for leaves;
 * those that it cannot switch on are left out. -1 with errno when there is no usable place.
 */
must_use int cg_trees_open_below(const struct cg_trees *t, size_t i, const char *name, struct cg_leaf *leaf);
