#define _GNU_SOURCE
#include "group_trees.h"

#include "fd.h"
#include "file.h"
#include "group_path.h"

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
	const char            *v1, *v2; /* NULL: not used there */
	enum group_controller  bit;
} controllers[] = {
	{ "memory", "memory", GROUP_MEMORY },
	{ "pids", "pids", GROUP_PIDS },
	{ "cpu", "cpu", GROUP_CPU },
	{ "cpuacct", NULL, GROUP_CPUACCT },
	{ "blkio", "io", GROUP_IO }, /* on v1 blkio does not know whose a write-back is: no figure is better */
};

static bool is_group_dir(const char *path, bool *v2)
{
	struct statfs fs;

	if (statfs(path, &fs) < 0)
		return false;
	*v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	return *v2 || fs.f_type == CGROUP_SUPER_MAGIC;
}

/* Controllers that are mounted together share a tree. */
static void add_controller(struct group_trees *t, const char *mount, enum group_controller bit)
{
	struct group_tree *tree = t->tree;
	bool               v2;

	if (strlen(mount) >= GROUP_PATH_MAX || !is_group_dir(mount, &v2) || (bit == GROUP_IO && !v2))
		return;
	while (tree < t->tree + t->n && strcmp(tree->mount, mount) != 0)
		tree++;
	if (tree == t->tree + t->n) {
		if (t->n == GROUP_TREES_MAX)
			return;
		t->n++;
		*tree = (struct group_tree){ .v2 = v2, .controllers = v2 ? GROUP_CPUACCT : 0 };
		strcpy(tree->mount, mount);
	}
	tree->controllers |= bit;
}

static void ask_libcgroup(struct group_trees *t)
{
	if (cgroup_init() != 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		char *mount = NULL;

		/* libcgroup names controllers as /proc/cgroups does, so io is "blkio" on v2 as well */
		if (cgroup_get_subsys_mount_point(controllers[i].v1, &mount) == 0)
			add_controller(t, mount, controllers[i].bit);
		free(mount);
	}
}

/*
 * Only a whole answer is kept or believed: a launcher in a mount namespace that
 * hides a hierarchy would otherwise take it away from everybody else.
 */
static bool is_whole(const struct group_trees *t)
{
	unsigned have = 0;

	for (size_t i = 0; i < t->n; i++)
		have |= t->tree[i].controllers;
	return !(~have & (GROUP_MEMORY | GROUP_PIDS | GROUP_CPU | GROUP_CPUACCT));
}

/* One line per tree: "3 0 /sys/fs/cgroup/memory". */
static bool read_cache(struct group_trees *t, int dir)
{
	scoped_bytes text = { 0 };
	struct err   ignored;
	char        *at;

	if (file_read(dir, "groups", 4096, &text, &ignored) < 0)
		return false;
	for (at = text.data; *at; at += strcspn(at, "\n"), at += *at == '\n') {
		struct group_tree *tree = &t->tree[t->n];
		unsigned           v2;
		bool               is_v2;

		if (t->n == GROUP_TREES_MAX || sscanf(at, "%u %u %255[^\n]", &tree->controllers, &v2, tree->mount) != 3 ||
		    !is_group_dir(tree->mount, &is_v2) || is_v2 != !!v2)
			return false;
		tree->v2 = is_v2;
		t->n++;
	}
	return is_whole(t);
}

static void write_cache(const struct group_trees *t, int dir)
{
	char   text[4096], name[32];
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%u %d %s\n", t->tree[i].controllers, t->tree[i].v2, t->tree[i].mount);
	snprintf(name, sizeof name, "groups.%d", getpid());
	scoped_fd fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (file_write_all(fd, text, n) < 0 || renameat(dir, name, dir, "groups") < 0)
		unlinkat(dir, name, 0);
}

static void read_own(struct group_trees *t)
{
	scoped_fd fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t   n  = fd < 0 ? 0 : read(fd, t->own, sizeof t->own - 1);

	t->own[n < 0 ? 0 : n] = 0;
}

void group_trees_find(struct group_trees *ret, const char *cache_dir)
{
	scoped_fd dir = open(cache_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	*ret = (struct group_trees){ 0 };
	if (dir < 0 || !read_cache(ret, dir)) {
		*ret = (struct group_trees){ 0 };
		ask_libcgroup(ret);
		if (dir >= 0 && is_whole(ret))
			write_cache(ret, dir);
	}
	read_own(ret);
}

/* --- the group above the leaves --- */

static int find_own_path(const struct group_trees *t, const struct group_tree *tree, char *path, size_t len)
{
	if (tree->v2)
		return group_path_find(t->own, "", path, len);
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		if (tree->controllers & controllers[i].bit)
			return group_path_find(t->own, controllers[i].v1, path, len);
	return -1;
}

/* On v2 a controller must be switched on in every group above; those that refuse are not usable. */
static unsigned switch_on(int dir, unsigned wanted)
{
	unsigned on = wanted & GROUP_CPUACCT; /* counted everywhere */
	char     text[32];

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		if (!(wanted & controllers[i].bit) || !controllers[i].v2)
			continue;
		snprintf(text, sizeof text, "+%s", controllers[i].v2);
		if (file_put(dir, "cgroup.subtree_control", text) == 0)
			on |= controllers[i].bit;
	}
	return on;
}

/* Nearly always there already: asked for before it is made. */
static int open_or_make(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* In the group above first: it can only hand on what it was given. */
static unsigned switch_on_for_leaves(int base, unsigned wanted)
{
	scoped_fd above = openat(base, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return above < 0 ? 0 : switch_on(base, switch_on(above, wanted));
}

static int open_below(const struct group_tree *tree, const char *own, struct group_leaf *leaf)
{
	char      path[2 * GROUP_PATH_MAX + 8];
	scoped_fd base = -1;

	snprintf(path, sizeof path, "%s%s/brig", tree->mount, own);
	base = open_or_make(path);
	if (base < 0)
		return -1;
	leaf->controllers = tree->v2 ? switch_on_for_leaves(base, tree->controllers) : tree->controllers;
	leaf->base_fd     = fd_take(&base);
	return 0;
}

/*
 * Below our own group first: a container's limit then bounds its cells too
 * (nsjail#219). On v2 a group with processes in it cannot hand out
 * controllers; root may then use the top of the hierarchy.
 */
int group_trees_open_base(const struct group_trees *t, size_t i, struct group_leaf *leaf)
{
	const struct group_tree *tree = &t->tree[i];
	char                     own[GROUP_PATH_MAX];

	if (find_own_path(t, tree, own, sizeof own) < 0)
		return -1;
	leaf->borrowed = own[0] != 0;
	if (open_below(tree, own, leaf) == 0) {
		if (!tree->v2 || leaf->controllers & ~(unsigned)GROUP_CPUACCT || !own[0])
			return 0;
		fd_closep(&leaf->base_fd);
	}
	leaf->borrowed = false;
	return tree->v2 && own[0] ? open_below(tree, "", leaf) : -1;
}
