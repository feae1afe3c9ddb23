#define _GNU_SOURCE
#include "group_give.h"

#include "fd.h"
#include "file.h"
#include "group_trees.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What whoever owns a group may write to, as systemd hands it over; the limits of the group itself stay ours. */
static int hand_over(int group, unsigned uid, unsigned gid)
{
	static const char *const files[] = { "cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (fchownat(group, files[i], uid, gid, 0) < 0 && errno != ENOENT)
			return -1;
	if (fchmod(group, 0711) < 0) /* a process that can open it can lock it */
		return -1;
	return fchown(group, uid, gid);
}

/* It was made as a place for cells; but a group of v2 that hands out controllers can be entered by nobody. The keeper steps aside first. */
static void hand_out_nothing(int group)
{
	static const char *const controllers[] = { "-memory", "-pids", "-cpu", "-io" };

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		(void)!file_put(group, "cgroup.subtree_control", controllers[i]); /* not on is an error, too */
}

static int give_one(const struct group_leaf *top, unsigned uid, unsigned gid, struct err *e)
{
	return hand_over(top->base_fd, uid, gid) < 0 ? err_sys(e, "a control group cannot be given to uid %u", uid) : 0;
}

/* --- what services left that are gone --- */

static bool has_processes(int top, const char *name)
{
	char path[64], first[2];

	snprintf(path, sizeof path, "%s/cgroup.procs", name);
	return group_read_file(top, path, first, sizeof first) && first[0];
}

enum { DYING_MS_MAX = 3000 }; /* some hosts have a PID 1 that reaps once a second; all leftovers share this patience */

/* False: somebody in there is still dying. */
static bool remove_below(int dir, const char *name)
{
	int            fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR           *below = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool           is_empty = true;

	while (below && (entry = readdir(below)))
		if (strncmp(entry->d_name, "cell-", 5) == 0 && unlinkat(fd, entry->d_name, AT_REMOVEDIR) < 0)
			is_empty = false;
	if (below)
		closedir(below);
	else if (fd >= 0)
		close(fd);
	unlinkat(dir, name, AT_REMOVEDIR);
	return is_empty;
}

/* A service lives in its group, or in the one that it stepped aside into. What is not empty cannot be removed. */
static bool has_helpers(int top)
{
	return has_processes(top, ".") || has_processes(top, "brig-launcher");
}

/*
 * A service that lives holds the lock of its group; its pid says nothing in another pid namespace. When it dies its
 * helpers and cells die too, but not at once.
 */
static void remove_service(int above, const char *name, int *patience_ms)
{
	scoped_fd top = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (top < 0 || flock(top, LOCK_EX | LOCK_NB) < 0)
		return;
	for (; (has_helpers(top) || !remove_below(top, "brig")) && *patience_ms > 0; --*patience_ms)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	remove_below(top, "brig-launcher");
	unlinkat(above, name, AT_REMOVEDIR);
}

static void remove_services(int top)
{
	int            fd  = openat(top, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int            patience_ms = DYING_MS_MAX;

	while (dir && (entry = readdir(dir)))
		if (strncmp(entry->d_name, "brigd-", 6) == 0)
			remove_service(fd, entry->d_name, &patience_ms);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

/* 0; 1: this tree is not for us. */
static int enter_one(const struct group_trees *trees, size_t i, const char *name, struct group_leaf *top, struct err *e)
{
	*top = (struct group_leaf){ .base_fd = -1, .fd = -1, .join_fd = -1, .v2 = trees->tree[i].v2 };
	if (group_trees_open_below(trees, i, name, top) < 0)
		return 1;
	if (flock(top->base_fd, LOCK_EX | LOCK_NB) < 0) {
		err_sys(e, "a control group of our own cannot be locked");
		close(top->base_fd);
		return -1;
	}
	if (top->v2)
		hand_out_nothing(top->base_fd);
	if (file_put(top->base_fd, "cgroup.procs", "0") == 0)
		return 0;
	err_sys(e, "a control group of our own cannot be entered");
	close(top->base_fd);
	return -1;
}

/*
 * Another service that starts takes a group without a lock for a leftover: one that is gone before we are in is made
 * again. One that is locked is that of a service in another pid namespace, or is being removed; one that is busy was
 * left by a service with our pid, and hands out controllers (v2): the next name, then.
 */
static int enter(const struct group_trees *trees, size_t i, struct group_leaf *top, struct err *e)
{
	enum { TRIES = 20 };
	char name[40], other[16] = "";
	int  r = -1;

	for (int n = 0; n < TRIES; n++) {
		snprintf(name, sizeof name, "brigd-%d%s", getpid(), other);
		r = enter_one(trees, i, name, top, e);
		if (r >= 0 || (e->errnum != ENOENT && e->errnum != ENODEV && e->errnum != EWOULDBLOCK && e->errnum != EBUSY))
			break;
		if (e->errnum == EWOULDBLOCK || e->errnum == EBUSY)
			snprintf(other, sizeof other, "-%d", n + 1);
	}
	return r;
}

/* What was entered stays open: it is the lock, and an exec keeps it. */
int group_give(unsigned uid, unsigned gid, struct err *e)
{
	struct group_trees trees;

	group_trees_find(&trees, "/run/brig");
	for (size_t i = 0; i < trees.n; i++) {
		struct group_leaf top;
		int               r = enter(&trees, i, &top, e);

		if (r > 0)
			continue;
		if (r == 0) {
			remove_services(top.base_fd);
			r = give_one(&top, uid, gid, e);
		}
		if (r < 0)
			return -1;
	}
	return 0;
}
