/*
 * extract.h - puts hostile entries into a tree, one by one.
 *
 * A link on the way to an entry is followed with the tree as /, and never out of
 * it; a link in the place of an entry is replaced. An entry belongs to the
 * builder; it gets no set-id bit, no attribute and no second name. Devices,
 * pipes and sockets are left out. The limits hold for all entries together,
 * including those that are replaced later.
 */
#pragma once
#include "err.h"

#include <linux/limits.h>

struct extraction {
	int      root; /* of the tree */
	uint64_t bytes_max;
	uint64_t bytes, entries; /* so far */
	uint64_t left_out, set_id; /* devices, pipes and sockets; files whose set-id bits were dropped */
};

/* "./usr//bin/" becomes "/usr/bin", "./" becomes "". Refuses "..", unprintable names, and what is too long or too deep.
 */
must_use int extract_normalize_path(const char *name, char path[PATH_MAX], struct err *e);

must_use int extract_dir(struct extraction *p, const char *path, struct err *e);
/* Creates an empty file, into which the caller writes `size` bytes at most. The descriptor is the caller's. */
must_use int extract_file(struct extraction *p, const char *path, uint64_t size, unsigned mode, struct err *e);
must_use int extract_link(struct extraction *p, const char *path, const char *target, struct err *e);
/* For a hard link: makes a second file with the same content. */
must_use int extract_hardlink_copy(struct extraction *p, const char *path, const char *from, struct err *e);
/* For an entry that is left out, such as a device: counts it. */
must_use int extract_skip_entry(struct extraction *p, struct err *e);

/* Whiteouts: remove the entry, or all entries of the directory. A missing one is no error. A link on the way is
 * refused. */
must_use int extract_whiteout_name(const struct extraction *p, const char *path, struct err *e);
must_use int extract_whiteout_dir(const struct extraction *p, const char *path, struct err *e);
