#define _GNU_SOURCE
#include "detach.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int detach_clone_mount(int from, uint64_t attrs, const char *what, struct err *e)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };
	scoped_fd         tree = open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 && errno == EINVAL) /* in a user namespace of its own, a process cannot separate mounts that came from the host (MNT_LOCKED) */
		return err_set(e, ERR_BAD_SPEC, "%s: something is mounted below it, and only root can show it without", what);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return err_sys(e, "set-up step open-trees: %s", what);
	return fd_take(&tree);
}

static bool fds_have_same_inode(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int detach_reopen_path(int from, const char *what, struct err *e)
{
	char      link[32], path[PATH_MAX];
	ssize_t   n;
	scoped_fd again = -1;

	snprintf(link, sizeof link, "/proc/self/fd/%d", from);
	n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return err_sys(e, "set-up step open-trees: %s", link);
	path[n] = 0;
	again   = open(path, O_PATH | O_CLOEXEC);
	if (again < 0 && errno == EACCES) /* this process may not search a directory above it: nothing is wrong with the host */
		return err_set(e, ERR_DENIED, "%s: %.200s: a directory above it is closed to the service; namei -l shows which, --private does without%s", what, path,
			       strcmp(what, "packages") == 0 ? ", and so does a store elsewhere (BRIG_STORE)" : "");
	if (again < 0)
		return err_sys(e, "set-up step open-trees: %s: %.300s", what, path);
	if (!fds_have_same_inode(from, again))
		return err_set(e, ERR_SETUP, "set-up step open-trees: %s: %.300s is another one by now", what, path);
	return fd_take(&again);
}
