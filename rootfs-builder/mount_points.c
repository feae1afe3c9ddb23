#define _GNU_SOURCE
#include "mount_points.h"

#include "fd.h"
#include "tree.h"

#include <fcntl.h>
#include <sys/stat.h>

/* clang-format off */
/* In this order: a later row lies in an earlier one. */
static const struct {
	const char *path;
	mode_t      type;
	const char *target;
} points[] = {
	{ "/dev",         S_IFDIR, NULL },
	{ "/dev/full",    S_IFREG, NULL }, /* the host's nodes are bound over these */
	{ "/dev/null",    S_IFREG, NULL },
	{ "/dev/random",  S_IFREG, NULL },
	{ "/dev/urandom", S_IFREG, NULL },
	{ "/dev/zero",    S_IFREG, NULL },
	{ "/dev/shm",     S_IFDIR, NULL },
	{ "/dev/fd",      S_IFLNK, "/proc/self/fd" },
	{ "/dev/stdin",   S_IFLNK, "/proc/self/fd/0" },
	{ "/dev/stdout",  S_IFLNK, "/proc/self/fd/1" },
	{ "/dev/stderr",  S_IFLNK, "/proc/self/fd/2" },
	{ "/proc",        S_IFDIR, NULL },
	{ "/tmp",         S_IFDIR, NULL },
	{ "/workspace",   S_IFDIR, NULL },
};
/* clang-format on */

static int make(int root, const char *path, mode_t type, const char *target, struct err *e)
{
	const char *name   = NULL;
	scoped_fd   parent = tree_open_parent(root, path, &name);
	struct stat st;

	if (parent < 0)
		return err_sys(e, "%s", path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type)
		return 0;
	if (tree_remove(parent, name, e) < 0)
		return -1;
	if (type == S_IFDIR)
		return tree_make_dir(root, path, e);
	return type == S_IFLNK ? tree_link(root, path, target, e) : tree_write(root, path, "", 0, e);
}

int mount_points_make(int root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(points); i++)
		if (make(root, points[i].path, points[i].type, points[i].target, e) < 0)
			return -1;
	return 0;
}
