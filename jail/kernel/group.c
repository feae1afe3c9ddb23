#define _GNU_SOURCE
#include "group.h"

#include "fd.h"
#include "file.h"
#include "group_place.h"
#include "group_trees.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

bool group_read_file(int dir, const char *name, char *buf, size_t len)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t   n  = fd < 0 ? -1 : read(fd, buf, len - 1);

	buf[n < 0 ? 0 : n] = 0;
	return n >= 0;
}

const struct group_leaf *group_leaf_with(const struct group *g, unsigned controller)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].controllers & controller)
			return &g->leaf[i];
	return NULL;
}

int group_clone_fd(const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].v2)
			return g->leaf[i].fd;
	return -1;
}

int group_open_tasks(const struct group *g, int fds[GROUP_TREES_MAX], struct err *e)
{
	int n = 0;

	for (size_t i = 0; i < g->n; i++) {
		if (g->leaf[i].v2)
			continue;
		fds[n] = openat(g->leaf[i].fd, "tasks", O_WRONLY | O_CLOEXEC);
		if (fds[n] < 0) {
			err_sys(e, "set-up step join-groups: tasks");
			while (n)
				close(fds[--n]);
			return -1;
		}
		n++;
	}
	return n;
}

void group_kill(const struct group *g)
{
	int fd = group_clone_fd(g);

	if (fd >= 0)
		(void)!file_put(fd, "cgroup.kill", "1");
}

static bool is_listed(int dir, pid_t pid)
{
	char text[4096], *at = text;

	group_read_file(dir, "cgroup.procs", text, sizeof text);
	while (*at) {
		if (strtol(at, &at, 10) == pid)
			return true;
		at += *at == '\n';
	}
	return false;
}

/* The pid is pinned first and looked up again: it may be somebody else's by now. */
static void kill_member(int dir, pid_t pid)
{
	scoped_fd pin = pidfd_open(pid, 0);

	if (pin >= 0 && is_listed(dir, pid))
		pidfd_send_signal(pin, SIGKILL, NULL, 0);
}

static void kill_members(int dir)
{
	char text[4096], *at = text;

	if (file_put(dir, "cgroup.kill", "1") == 0)
		return;
	group_read_file(dir, "cgroup.procs", text, sizeof text);
	while (*at) {
		long pid = strtol(at, &at, 10);

		if (pid > 0)
			kill_member(dir, (pid_t)pid);
		at += *at == '\n';
	}
}

/* Leaves empty a moment after their last process is reaped: try, at first at once, for two seconds. */
static int remove_leaf(int base, const char *name)
{
	for (int ms = 0; ms < 2000; ms++) {
		if (unlinkat(base, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -1;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	errno = EBUSY;
	return -1;
}

/*
 * A lock is on a directory, a removal is by name: launchers that do not share a runtime directory may remove and make
 * the same name between our open() and our lock.
 */
static enum group_answer lock_named(int dir, int base, const char *name)
{
	struct stat ours, named;

	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? GROUP_TAKEN : GROUP_FAILED;
	if (fstat(dir, &ours) < 0)
		return GROUP_FAILED;
	if (fstatat(base, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? GROUP_TAKEN : GROUP_FAILED;
	return ours.st_ino == named.st_ino ? GROUP_MADE : GROUP_TAKEN;
}

/* Of a launcher that crashed: the kernel has let go of its lock. */
static enum group_answer clear_leftover(int base, const char *name)
{
	enum group_answer answer;
	scoped_fd         dir = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? GROUP_MADE : GROUP_FAILED;
	answer = lock_named(dir, base, name);
	if (answer != GROUP_MADE)
		return answer;
	kill_members(dir);
	return remove_leaf(base, name) < 0 ? GROUP_FAILED : GROUP_MADE;
}

enum { LEAF_MODE = 0700 }; /* whoever may open it may lock it, and would keep us out */

static enum group_answer make_leaf(struct group_leaf *leaf, const char *name)
{
	enum group_answer answer = GROUP_MADE;

	if (mkdirat(leaf->base_fd, name, LEAF_MODE) < 0) {
		answer = errno == EEXIST ? clear_leftover(leaf->base_fd, name) : GROUP_FAILED;
		if (answer == GROUP_MADE && mkdirat(leaf->base_fd, name, LEAF_MODE) < 0)
			answer = errno == EEXIST ? GROUP_TAKEN : GROUP_FAILED;
	}
	if (answer != GROUP_MADE)
		return answer;
	leaf->made = true;
	leaf->fd   = openat(leaf->base_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf->fd < 0)
		return GROUP_FAILED;
	answer     = lock_named(leaf->fd, leaf->base_fd, name);
	leaf->made = answer != GROUP_TAKEN; /* by now it is somebody else's, and his to remove */
	return answer;
}

/* The groups of others, or a tree that is shown read-only. */
static bool is_not_ours(int errnum)
{
	return errnum == EACCES || errnum == EPERM || errnum == EROFS;
}

static enum group_answer make_leaves(struct group *g, const struct group_trees *trees)
{
	for (size_t i = 0; i < trees->n; i++) {
		struct group_leaf *leaf = &g->leaf[g->n];
		enum group_answer  answer;

		*leaf = (struct group_leaf){ .base_fd = -1, .fd = -1, .v2 = trees->tree[i].v2 };
		if (group_trees_open_base(trees, i, leaf) < 0) {
			if (errno == EBUSY)
				snprintf(g->why, sizeof g->why, "our control group is delegated, but holds other processes");
			continue;
		}
		g->n++;
		answer = make_leaf(leaf, g->name);
		if (answer == GROUP_FAILED && errno == ENOENT) { /* another launcher just removed the empty base */
			fd_closep(&leaf->base_fd);
			if (group_trees_open_base(trees, i, leaf) == 0)
				answer = make_leaf(leaf, g->name);
		}
		if (answer == GROUP_FAILED && !leaf->made && is_not_ours(errno)) { /* its controllers are missing, then */
			fd_closep(&leaf->base_fd);
			g->n--;
			continue;
		}
		if (answer != GROUP_MADE)
			return answer;
	}
	return GROUP_MADE;
}

enum group_answer group_open(struct group *ret, const char *cache_dir, uint32_t slot, struct err *e)
{
	struct group       g = { 0 };
	struct group_trees trees;
	enum group_answer  answer;
	struct err         ignored;

	snprintf(g.name, sizeof g.name, "cell-%u", slot);
	group_trees_find(&trees, cache_dir);
	answer = make_leaves(&g, &trees);
	if (answer == GROUP_FAILED)
		err_sys(e, "set-up step make-groups: %s", g.name);
	if (answer != GROUP_MADE) {
		(void)!group_close(&g, &ignored);
		return answer;
	}
	*ret = g;
	return GROUP_MADE;
}

/* Fails while others use it. */
static void remove_base(struct group_leaf *leaf)
{
	scoped_fd above = openat(leaf->base_fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (above >= 0 && unlinkat(above, "brig", AT_REMOVEDIR) == 0 && leaf->v2)
		group_place_leave(above);
}

int group_close(struct group *g, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct group_leaf *leaf = &g->leaf[i];

		if (leaf->made && remove_leaf(leaf->base_fd, g->name) < 0)
			r = err_sys(e, "control group %s cannot be removed", g->name);
		if (leaf->borrowed)
			remove_base(leaf);
		fd_closep(&leaf->fd);
		fd_closep(&leaf->base_fd);
	}
	g->n = 0;
	return r;
}

void group_clear(const char *cache_dir, uint32_t slot)
{
	struct group_trees trees;
	char               name[32];

	snprintf(name, sizeof name, "cell-%u", slot);
	group_trees_find(&trees, cache_dir);
	for (size_t i = 0; i < trees.n; i++) {
		struct group_leaf leaf = { .base_fd = -1, .v2 = trees.tree[i].v2 };

		if (group_trees_open_base(&trees, i, &leaf) < 0)
			continue;
		(void)!clear_leftover(leaf.base_fd, name);
		if (leaf.borrowed)
			remove_base(&leaf);
		close(leaf.base_fd);
	}
}
