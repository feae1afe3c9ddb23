#define _GNU_SOURCE
#include "mount_points.h"

#include "cell_place.h"
#include "fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
/* Programs of others expect them, and no cell mounts them. */
static const char *const links[][2] = {
	{ "/dev/fd",     "/proc/self/fd" },
	{ "/dev/stdin",  "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" },
	{ "/dev/stderr", "/proc/self/fd/2" },
};
/* clang-format on */

/* True: it is there. What is of another type has gone. */
static int clear(int root, const char *path, mode_t type, bool *ret, struct err *e)
{
	const char *name   = NULL;
	scoped_fd   parent = tree_open_parent(root, path, &name);
	struct stat st;

	if (parent < 0)
		return err_sys(e, "%s", path);
	*ret = fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
	return *ret ? 0 : tree_remove(parent, name, e);
}

static int make_links(int root, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		bool there;

		if (clear(root, links[i][0], S_IFLNK, &there, e) < 0 || (!there && tree_link(root, links[i][0], links[i][1], e) < 0))
			return -1;
	}
	return 0;
}

int mount_points_make(int root, struct err *e)
{
	struct cell_places list;

	if (cell_places_list(&list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		const struct cell_place *p = &list.place[i];
		bool                     there;

		if (strcmp(p->path, "/usr") != 0 && clear(root, p->path, p->type == TREE_DIR ? S_IFDIR : S_IFREG, &there, e) < 0)
			return -1;
		if (cell_place_make(root, p, e) < 0)
			return -1;
	}
	return make_links(root, e);
}
