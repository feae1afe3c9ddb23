#define _GNU_SOURCE
#include "cg_give.h"

#include "fd.h"
#include "file.h"
#include "cg_dir.h"
#include "cg_trees.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Changes the owner of the same files as systemd does for Delegate=. The limits of the group itself stay root's. */
static int chown_cgroup_files(int group, unsigned uid, unsigned gid)
{
	static const char *const files[] = { "cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (fchownat(group, files[i], uid, gid, 0) < 0 && errno != ENOENT)
			return -1;
	if (fchmod(group, 0711) < 0) /* other users could open it otherwise, and lock it */
		return -1;
	return fchown(group, uid, gid);
}

/* --- what ended services have left --- */

static bool cgroup_has_processes(int top, const char *name)
{
	char path[64], first[2];

	snprintf(path, sizeof path, "%s/cgroup.procs", name);
	return cg_read_file(top, path, first, sizeof first) && first[0];
}

enum { DYING_MS_MAX = 3000 }; /* for all leftovers together; on some hosts PID 1 reaps only once a second */

/* False: a cell in there still has processes that are dying. */
static bool remove_cell_groups(int dir, const char *name)
{
	int            fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR           *below = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool           is_empty = true;

	while (below && (entry = readdir(below)))
		if (begins_with(entry->d_name, "cell-") && unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
			is_empty = false;
	if (below)
		closedir(below);
	else if (fd >= 0)
		close(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
	return is_empty;
}

/* A service's processes are in its group, or in the one into which it stepped aside. */
static bool service_has_processes(int top)
{
	return cgroup_has_processes(top, ".") || cgroup_has_processes(top, "brig-launcher");
}

/*
 * A service that is alive holds the lock of its group; the pid in the name is no proof, because it may be from
 * another pid namespace. When a service dies, its other processes and its cells die too, but a moment later.
 */
static void remove_service_group(int above, const char *name, int *wait_ms)
{
	scoped_fd top = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (top < 0 || flock(top, LOCK_EX | LOCK_NB) < 0)
		return;
	for (; (service_has_processes(top) || !remove_cell_groups(top, "brig")) && *wait_ms > 0; --*wait_ms)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	remove_cell_groups(top, "brig-launcher");
	unlinkat(above, name, AT_REMOVEDIR);
}

static void remove_ended_services(int top)
{
	int            fd  = openat(top, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int            wait_ms = DYING_MS_MAX;

	while (dir && (entry = readdir(dir)))
		if (begins_with(entry->d_name, "brigd-"))
			remove_service_group(fd, entry->d_name, &wait_ms);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

/* 0: entered. 1: this hierarchy has no place for us. -1: it failed, with *e. */
static int enter_service_group(const struct cg_trees *trees, size_t i, const char *name, struct cg_leaf *top,
			       struct err *e)
{
	*top = (struct cg_leaf){ .base_fd = -1, .fd = -1, .join_fd = -1, .v2 = trees->tree[i].v2 };
	if (cg_trees_open_below(trees, i, name, top) < 0)
		return 1;
	if (flock(top->base_fd, LOCK_EX | LOCK_NB) < 0) {
		err_sys(e, "a control group of our own cannot be locked");
		close(top->base_fd);
		return -1;
	}
	/*
	 * cg_trees_open_below() has switched controllers on, for cells below. But no process can enter a v2 group
	 * whose controllers are on, so they are switched off again. The monitor steps aside and switches them on
	 * later.
	 */
	if (top->v2)
		(void)cg_switch_controllers(top->base_fd, '-', ~0u);
	if (file_write_existing(top->base_fd, "cgroup.procs", "0") == 0)
		return 0;
	err_sys(e, "a control group of our own cannot be entered");
	close(top->base_fd);
	return -1;
}

/*
 * Another service that starts removes a group without a lock as a leftover. If it removes ours before we have entered
 * it, make it again. If the group is locked, it belongs to a service in another pid namespace, or is being removed.
 * If it is busy, a service with our pid has left it with controllers switched on (v2). In both cases try the next
 * name.
 */
static int make_and_enter_service_group(const struct cg_trees *trees, size_t i, char name[40], struct cg_leaf *top,
					struct err *e)
{
	enum { TRIES = 20 };
	char other[16] = "";
	int  r = -1;

	for (int n = 0; n < TRIES; n++) {
		snprintf(name, 40, "brigd-%d%s", getpid(), other);
		r = enter_service_group(trees, i, name, top, e);
		if (r >= 0 ||
		    (e->errnum != ENOENT && e->errnum != ENODEV && e->errnum != EWOULDBLOCK && e->errnum != EBUSY))
			break;
		if (e->errnum == EWOULDBLOCK || e->errnum == EBUSY)
			snprintf(other, sizeof other, "-%d", n + 1);
	}
	return r;
}

static int give_service_group_in_tree(const struct cg_trees *trees, size_t i, unsigned uid, unsigned gid,
				      struct cg_given *ret, struct err *e)
{
	struct cg_leaf top;
	char           name[40];
	int            r = make_and_enter_service_group(trees, i, name, &top, e), above;

	if (r)
		return r < 0 ? -1 : 0;
	remove_ended_services(top.base_fd);
	above = openat(top.base_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (above < 0)
		return err_sys(e, "the group above %s", name);
	memcpy(ret->name[ret->n], name, sizeof name);
	ret->above[ret->n++] = above;
	if (chown_cgroup_files(top.base_fd, uid, gid) < 0)
		return err_sys(e, "a control group cannot be given to uid %u", uid);
	return 0;
}

/* The descriptors of the groups stay open until the process ends: they hold the locks. */
int cg_give_to_monitor(unsigned uid, unsigned gid, struct cg_given *ret, struct err *e)
{
	struct cg_trees trees;

	*ret = CG_GIVEN_NONE;
	cg_trees_find(&trees, "/run/brig");
	for (size_t i = 0; i < trees.n; i++)
		if (give_service_group_in_tree(&trees, i, uid, gid, ret, e) < 0) {
			cg_given_close(ret);
			return -1;
		}
	return 0;
}

void cg_given_close(struct cg_given *g)
{
	while (g->n)
		fd_closep(&g->above[--g->n]);
}
