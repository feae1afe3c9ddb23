/*
 * plant.h - hostile entries go into a tree, one by one.
 *
 * A link on the way to an entry is followed within the tree, as it would be
 * where the tree is /, and never out of it; a link in the place of an entry is
 * replaced. An entry becomes ours; it gets no set-id bit, no attribute and no
 * second name. Devices, pipes and sockets are left out. The bounds hold for all
 * entries together, those that are replaced later counted as well.
 */
#pragma once
#include "err.h"

#include <linux/limits.h>

struct plant {
	int      root; /* of the tree */
	uint64_t bytes_max;
	uint64_t bytes, entries; /* so far */
	uint64_t left_out, set_id; /* entries that no tree has; bits that were dropped */
};

/* "./usr//bin/" becomes "/usr/bin", "./" becomes "". Refuses what climbs, is too long or too deep, or cannot be shown. */
must_use int plant_path(const char *name, char path[PATH_MAX], struct err *e);

must_use int plant_dir(struct plant *p, const char *path, struct err *e);
/* The new file, empty, to be given `size` bytes at most; the caller's. */
must_use int plant_file(struct plant *p, const char *path, uint64_t size, unsigned mode, struct err *e);
must_use int plant_link(struct plant *p, const char *path, const char *target, struct err *e);
/* What is a second name elsewhere is a second file here. */
must_use int plant_copy(struct plant *p, const char *path, const char *from, struct err *e);
/* For an entry that no tree has, such as a device: counts it and leaves it out. */
must_use int plant_nothing(struct plant *p, struct err *e);

/* Whiteouts: the entry goes, or all that is in the directory. What is not there is fine; a link on the way is not followed but refused. */
must_use int plant_erase(const struct plant *p, const char *path, struct err *e);
must_use int plant_empty(const struct plant *p, const char *path, struct err *e);
