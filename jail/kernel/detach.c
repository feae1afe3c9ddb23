#define _GNU_SOURCE
#include "detach.h"

#include "fd.h"

#include <fcntl.h>
#include <sys/mount.h>

int detach_mount(int from, uint64_t attrs, const char *what, struct err *e)
{
	struct mount_attr attr = { .attr_set = attrs, .propagation = MS_PRIVATE };
	scoped_fd         tree = open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return err_sys(e, "set-up step open-trees: %s", what);
	return fd_take(&tree);
}
