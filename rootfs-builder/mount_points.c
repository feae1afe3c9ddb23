#define _GNU_SOURCE
#include "mount_points.h"

#include "cell_path.h"
#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int clear(int root, const struct cell_path *p, struct err *e)
{
	const char *name   = NULL;
	scoped_fd   parent = tree_open_parent(root, p->path, &name);
	struct stat st;

	if (parent < 0) /* then the place is missing too */
		return errno == ENOENT ? 0 : err_sys(e, "%s", p->path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (st.st_mode & S_IFMT) == (p->type == TREE_DIR ? S_IFDIR : S_IFREG))
		return 0;
	return tree_remove(parent, name, e);
}

static int make_links(int root, struct err *e)
{
	static const char *const links[][2] = {
		{ "/dev/fd", "/proc/self/fd" },
		{ "/dev/stdin", "/proc/self/fd/0" },
		{ "/dev/stdout", "/proc/self/fd/1" },
		{ "/dev/stderr", "/proc/self/fd/2" },
	};

	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (tree_remove_path(root, links[i][0], e) < 0 || tree_link(root, links[i][0], links[i][1], e) < 0)
			return -1;
	return 0;
}

int mount_points_make(int root, struct err *e)
{
	struct cell_paths list;

	if (cell_paths_list(&list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		if (clear(root, &list.place[i], e) < 0)
			return -1;
	return cell_paths_make(root, e) < 0 ? -1 : make_links(root, e);
}
