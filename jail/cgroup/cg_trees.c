#define _GNU_SOURCE
#include "cg_trees.h"

#include "fd.h"
#include "file.h"
#include "cg_path.h"
#include "cg_dir.h"
#include "mountinfo.h"

#include <libcgroup.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static const struct {
	const char         *v1, *v2; /* NULL: not used there */
	enum cg_controller  bit;
} controllers[] = {
	{ "memory", "memory", CG_MEMORY },
	{ "pids", "pids", CG_PIDS },
	{ "cpu", "cpu", CG_CPU },
	{ "cpuacct", NULL, CG_CPUACCT },
	{ "blkio", "io", CG_IO }, /* unused on v1: blkio charges written-back pages to the wrong group, and no figure is better than that */
};

static bool is_cgroup_mount(const char *path, bool *v2)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	*v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	return *v2 || fs.f_type == CGROUP_SUPER_MAGIC;
}

/* Controllers that are mounted together share a tree. */
static void add_mounted_controller(struct cg_trees *t, const char *mount, enum cg_controller bit)
{
	struct cg_tree *tree = t->tree;
	bool            v2;

	if (strlen(mount) >= CG_PATH_MAX || !is_cgroup_mount(mount, &v2) || (bit == CG_IO && !v2))
		return;
	while (tree < t->tree + t->n && strcmp(tree->mount, mount) != 0)
		tree++;
	if (tree == t->tree + t->n) {
		if (t->n == CG_TREES_MAX)
			return;
		t->n++;
		*tree = (struct cg_tree){ .v2 = v2, .controllers = v2 ? CG_CPUACCT : 0 };
		strcpy(tree->mount, mount);
	}
	tree->controllers |= bit;
}

static void add_libcgroup_mount(struct cg_trees *t, const char *name, enum cg_controller bit)
{
	char *mount = NULL;

	if (name && cgroup_get_subsys_mount_point(name, &mount) == 0)
		add_mounted_controller(t, mount, bit);
	free(mount);
}

/* libcgroup does not know which part of a hierarchy is mounted. Of mounts at one path the last is the visible one. */
static void read_mount_roots(struct cg_trees *t)
{
	scoped_bytes     text = { 0 };
	struct mountinfo m;
	struct err       ignored;
	size_t           at = 0;

	if (file_read(AT_FDCWD, "/proc/self/mountinfo", MIB, &text, &ignored) < 0)
		return;
	while (mountinfo_next(text.data, text.len, &at, &m))
		for (size_t i = 0; i < t->n; i++)
			if (strcmp(m.at, t->tree[i].mount) == 0 && strlen(m.root) < CG_PATH_MAX)
				strcpy(t->tree[i].root, m.root);
}

/*
 * An answer without one of these controllers is neither cached nor believed:
 * a launcher whose mount namespace hides a hierarchy would hide it from all
 * other launchers through the cache.
 */
static bool has_all_controllers(const struct cg_trees *t)
{
	unsigned have = 0;

	for (size_t i = 0; i < t->n; i++)
		have |= t->tree[i].controllers;
	return !(~have & (CG_MEMORY | CG_PIDS | CG_CPU | CG_CPUACCT));
}

/* One line per tree: "3 0 /sys/fs/cgroup/memory", a tab, "/". */
static bool read_tree_cache(struct cg_trees *t, int dir)
{
	scoped_bytes text = { 0 };
	struct err   ignored;
	char        *at;

	if (file_read(dir, "groups", 4096, &text, &ignored) < 0)
		return false;
	for (at = text.data; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		struct cg_tree *tree = &t->tree[t->n];
		unsigned        v2;
		bool            is_v2;

		if (t->n == CG_TREES_MAX || sscanf(at, "%u %u %255[^\t\n]\t%255[^\n]", &tree->controllers, &v2, tree->mount, tree->root) != 4 ||
		    !is_cgroup_mount(tree->mount, &is_v2) || is_v2 != !!v2)
			return false;
		tree->v2 = is_v2;
		t->n++;
	}
	return has_all_controllers(t);
}

static void write_tree_cache(const struct cg_trees *t, int dir)
{
	char   text[4096], name[32];
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%u %d %s\t%s\n", t->tree[i].controllers, t->tree[i].v2, t->tree[i].mount,
		                      t->tree[i].root);
	snprintf(name, sizeof name, "groups.%d", getpid());
	scoped_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (file_write_all(fd, text, n) < 0 || renameat(dir, name, dir, "groups") < 0)
		unlinkat(dir, name, 0);
}

/* The path of our own group below the mount, "" for the mount itself. -1 when it is not below. */
static int find_own_cgroup_path(const struct cg_trees *t, const struct cg_tree *tree, char *path, size_t len)
{
	const char *name = tree->v2 ? "" : NULL;

	for (size_t i = 0; !name && i < ARRAY_LEN(controllers); i++)
		if (tree->controllers & controllers[i].bit)
			name = controllers[i].v1;
	return name && cg_path_find(t->own, name, path, len) == 0 && mountinfo_strip_root(tree->root, path) ? 0 : -1;
}

/* A cached answer is about the mounts that we see if our own group is below each of them. */
static bool is_cache_of_visible_mounts(const struct cg_trees *t)
{
	char own[CG_PATH_MAX], path[2 * CG_PATH_MAX];

	for (size_t i = 0; i < t->n; i++) {
		if (find_own_cgroup_path(t, &t->tree[i], own, sizeof own) < 0)
			return false;
		snprintf(path, sizeof path, "%s%s", t->tree[i].mount, own);
		if (access(path, F_OK) < 0)
			return false;
	}
	return true;
}

void cg_trees_find(struct cg_trees *ret, const char *cache_dir)
{
	scoped_fd dir = open(cache_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = (struct cg_trees){ 0 };
	(void)cg_read_file(AT_FDCWD, "/proc/self/cgroup", ret->own, sizeof ret->own);
	if (dir >= 0 && read_tree_cache(ret, dir) && is_cache_of_visible_mounts(ret))
		return;
	memset(ret->tree, 0, sizeof ret->tree);
	ret->n = 0;
	for (size_t i = 0, found = cgroup_init() == 0; found && i < ARRAY_LEN(controllers); i++) {
		add_libcgroup_mount(ret, controllers[i].v1, controllers[i].bit);
		if (controllers[i].v2 && strcmp(controllers[i].v1, controllers[i].v2) != 0)
			add_libcgroup_mount(ret, controllers[i].v2, controllers[i].bit);
	}
	read_mount_roots(ret);
	if (dir >= 0 && has_all_controllers(ret))
		write_tree_cache(ret, dir);
}

/* --- the group above the leaves --- */

static int open_cgroup_below(int above, const char *name)
{
	return openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/*
 * The group nearly always exists, so open it first. A service that starts may take an empty group for a leftover and
 * remove it between our mkdir and our open: then it is made again. A failure would leave the caller in the group
 * above.
 */
static int open_or_make_cgroup(int above, const char *name)
{
	enum { TRIES = 20 };
	int fd = open_cgroup_below(above, name);

	for (int n = 0; n < TRIES && fd < 0 && errno == ENOENT; n++) {
		if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
			return -1;
		fd = open_cgroup_below(above, name);
	}
	return fd;
}

/* Below our own group, so that a container's limit bounds its cells, too (nsjail#219). */
static int open_base_below_v1(const struct cg_tree *tree, const char *own, const char *name, struct cg_leaf *leaf)
{
	char      path[2 * CG_PATH_MAX];
	scoped_fd above = -1;

	snprintf(path, sizeof path, "%s%s", tree->mount, own);
	above = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (above < 0)
		return -1;
	leaf->base_fd     = open_or_make_cgroup(above, name);
	leaf->controllers = tree->controllers;
	leaf->borrowed    = own[0] || strcmp(tree->root, "/") != 0;
	return leaf->base_fd < 0 ? -1 : 0;
}

/* Controllers are switched on in the group above first: a group can only hand out what it has. */
static int open_base_below_v2(const struct cg_tree *tree, const char *own, const char *name, struct cg_leaf *leaf)
{
	struct cg_dir place;
	int           base, errnum;

	if (cg_dir_open(tree->mount, own, &place) < 0)
		return -1;
	base   = open_or_make_cgroup(place.fd, name);
	errnum = errno;
	if (base < 0)
		cg_dir_step_back(place.fd);
	else
		leaf->controllers = cg_enable_controllers(base, cg_enable_controllers(place.fd, tree->controllers)) | CG_CPUACCT; /* counted everywhere */
	leaf->base_fd  = base;
	leaf->borrowed = !place.is_top;
	close(place.fd);
	errno = errnum; /* of open_or_make_cgroup(): an EBUSY of cg_dir_step_back() would be taken for that of cg_dir_open() */
	return base < 0 ? -1 : 0;
}

int cg_trees_open_below(const struct cg_trees *t, size_t i, const char *name, struct cg_leaf *leaf)
{
	const struct cg_tree *tree = &t->tree[i];
	char                  own[CG_PATH_MAX];

	if (find_own_cgroup_path(t, tree, own, sizeof own) < 0)
		return -1;
	return tree->v2 ? open_base_below_v2(tree, own, name, leaf) : open_base_below_v1(tree, own, name, leaf);
}
