#define _GNU_SOURCE
#include "normalise.h"

#include "fd.h"
#include "tree.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define EPOCH 315532800 /* 1980-01-01T00:00:00Z */

static int set_normal_mode(int root, const struct tree_entry *entry)
{
	unsigned  mode = entry->type == TREE_DIR || entry->mode & S_IXUSR ? 0755 : 0644;
	scoped_fd fd   = -1;

	if (entry->type != TREE_FILE && entry->type != TREE_DIR)
		return 0;
	fd = tree_open_entry(root, entry, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
	return fd < 0 ? -1 : fchmod(fd, entry->type == TREE_DIR ? mode : mode | (entry->mode & (S_ISUID | S_ISGID)));
}

/* The owner first: chown() clears set-id bits, which lint must see. */
static int normalise_entry(int root, const struct tree_entry *entry, struct err *e)
{
	const struct timespec times[2] = { { EPOCH, 0 }, { EPOCH, 0 } };
	const char           *name;
	scoped_fd             parent = tree_open_parent(root, entry->path, &name);

	if (parent < 0)
		return err_sys(e, "%s", entry->path);
	if ((entry->uid != geteuid() || entry->gid != getegid()) &&
	    fchownat(parent, name, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "set the owner of %s", entry->path);
	if (set_normal_mode(root, entry) < 0)
		return err_sys(e, "set the mode of %s", entry->path);
	if (utimensat(parent, name, times, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "set the time of %s", entry->path);
	return 0;
}

int normalise_apply(int root, struct err *e)
{
	const struct timespec times[2] = { { EPOCH, 0 }, { EPOCH, 0 } };
	scoped_tree           t        = { 0 };

	if (tree_scan(root, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < t.n; i++)
		if (normalise_entry(root, &t.entry[i], e) < 0)
			return -1;
	if (fchown(root, geteuid(), getegid()) < 0 || fchmod(root, 0755) < 0 || futimens(root, times) < 0)
		return err_sys(e, "the tree's root directory");
	return 0;
}
