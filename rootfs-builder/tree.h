/*
 * tree.h - a rootfs under construction, seen as a list of its entries.
 *
 * Everything is reached from one descriptor of the tree's root, and no symlink
 * in the tree can lead out of it: the kernel resolves them with the tree as /.
 * A scan is a snapshot, sorted by the bytes of the path; it owns its texts.
 */
#pragma once
#include "err.h"

#include <linux/limits.h>
#include <sys/types.h>

enum tree_type { TREE_FILE, TREE_DIR, TREE_LINK, TREE_OTHER };

struct tree_entry {
	char          *path; /* "/usr/bin/python3"; the root itself is no entry */
	char          *target; /* of a link, else NULL */
	enum tree_type type;
	unsigned       mode; /* 07777 */
	unsigned       links;
	uid_t          uid;
	gid_t          gid;
	uint64_t       size; /* of a file, else 0 */
};

struct tree {
	struct tree_entry *entry;
	size_t             n, room;
};

#define TREE_ENTRIES_MAX 500000
#define TREE_DEPTH_MAX   64

must_use int tree_scan(int root, struct tree *ret, struct err *e);
void         tree_done(struct tree *t);
#define scoped_tree scoped(tree_done) struct tree

const struct tree_entry *tree_find(const struct tree *t, const char *path); /* or NULL */

/* These open a path inside the tree, and return a descriptor, or -1 with errno. Links are followed with the tree as /.
 */
int tree_open(int root, const char *path, int flags);
/* Whether path, with links followed inside the tree, is of this type, like S_IFREG. */
bool tree_path_has_type(int root, const char *path, mode_t type);
/* Opens the entry itself, and fails at a link anywhere on the way. */
int tree_open_entry(int root, const struct tree_entry *entry, int flags);
/* Opens the directory of an entry, following links; *name points at the last component of path. */
int tree_open_parent(int root, const char *path, const char **name);

/* Makes a directory and the missing ones above it, 0755. */
must_use int tree_make_dir(int root, const char *path, struct err *e);
/* Writes a new file, 0644, in place of an entry of that name; never through a link. */
must_use int tree_write(int root, const char *path, const void *bytes, size_t len, struct err *e);
must_use int tree_link(int root, const char *path, const char *target, struct err *e);

/* Copies at most so many bytes. -1 with errno. */
must_use int tree_copy_bytes(int from, int to, uint64_t most);

/* Removes name in dir, or path in the tree, and all below it. A missing one is no error. */
must_use int tree_remove(int dir, const char *name, struct err *e);
must_use int tree_remove_path(int root, const char *path, struct err *e);

/* Visits each entry of a directory until a visit returns other than 0, and returns that. Closes dir; -1 is an error
 * with errno. */
typedef int (*tree_visit)(void *context, int dir, const char *name, struct err *e);
must_use int tree_each_in_dir(int dir, const char *path, tree_visit visit, void *context, struct err *e);
/* -1 with errno. */
must_use int tree_read_link(int dir, const char *name, char target[PATH_MAX]);

/* "/a/b": absolute, printable, without an empty, "." or ".." component, and without a slash at the end. */
bool tree_path_is_plain(const char *path);
