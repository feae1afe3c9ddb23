#define _GNU_SOURCE
#include "cg.h"

#include "fd.h"
#include "file.h"
#include "cg_members.h"
#include "cg_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int cg_clone_fd(const struct cg *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].v2)
			return g->leaf[i].fd;
	return -1;
}

int cg_join_fds(const struct cg *g, int fds[CG_TREES_MAX])
{
	int n = 0;

	for (size_t i = 0; i < g->n; i++)
		if (!g->leaf[i].v2)
			fds[n++] = g->leaf[i].join_fd;
	return n;
}

int cg_open_join_files(struct cg *g, struct err *e)
{
	for (size_t i = 0; i < g->n; i++) {
		struct cg_leaf *leaf = &g->leaf[i];

		if (leaf->v2 || leaf->join_fd >= 0)
			continue;
		leaf->join_fd = openat(leaf->fd, "tasks", O_WRONLY | O_CLOEXEC);
		if (leaf->join_fd < 0)
			return err_sys(e, "set-up step join-groups: tasks");
	}
	return 0;
}

void cg_kill(const struct cg *g)
{
	int fd = cg_clone_fd(g);

	if (fd >= 0)
		(void)!file_write_existing(fd, "cgroup.kill", "1");
}

bool cg_set_frozen(const struct cg *g, bool is)
{
	int fd = cg_clone_fd(g);

	return fd >= 0 && file_write_existing(fd, "cgroup.freeze", is ? "1" : "0") == 0;
}

static void kill_cgroup_members(int dir)
{
	scoped_bytes list = { 0 };
	const char  *at;

	if (file_write_existing(dir, "cgroup.kill", "1") == 0 || !cg_members_read(dir, &list))
		return;
	at = list.data;
	for (pid_t pid; (pid = cg_members_next_pid(&at)) > 0;)
		(void)cg_member_kill(dir, pid);
}

/* A leaf becomes empty a moment after its last process is reaped: rmdir is tried each millisecond for two seconds. */
static int remove_cgroup_leaf(int base, const char *name)
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
 * A lock is on a directory, but a removal is by name: a launcher that does not share our runtime directory may remove
 * the directory and make another of the same name between our open() and our lock.
 */
static enum cg_answer lock_leaf_by_name(int dir, int base, const char *name)
{
	struct stat ours, named;

	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? CG_TAKEN : CG_FAILED;
	if (fstat(dir, &ours) < 0)
		return CG_FAILED;
	if (fstatat(base, name, &named, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? CG_TAKEN : CG_FAILED;
	return ours.st_ino == named.st_ino ? CG_MADE : CG_TAKEN;
}

/* Removes the leaf of a process that crashed: the kernel has released its lock. MADE: the name is free. */
static enum cg_answer clear_leftover_leaf(int base, const char *name)
{
	enum cg_answer answer;
	scoped_fd      dir = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? CG_MADE : CG_FAILED;
	answer = lock_leaf_by_name(dir, base, name);
	if (answer != CG_MADE)
		return answer;
	kill_cgroup_members(dir);
	return remove_cgroup_leaf(base, name) < 0 ? CG_FAILED : CG_MADE;
}

enum { LEAF_MODE = 0700 }; /* any process that can open the leaf could lock it */

static enum cg_answer make_cgroup_leaf(struct cg_leaf *leaf, const char *name)
{
	enum cg_answer answer = CG_MADE;

	if (mkdirat(leaf->base_fd, name, LEAF_MODE) < 0) {
		answer = errno == EEXIST ? clear_leftover_leaf(leaf->base_fd, name) : CG_FAILED;
		if (answer == CG_MADE && mkdirat(leaf->base_fd, name, LEAF_MODE) < 0)
			answer = errno == EEXIST ? CG_TAKEN : CG_FAILED;
	}
	if (answer != CG_MADE)
		return answer;
	leaf->made = true;
	leaf->fd   = openat(leaf->base_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf->fd < 0)
		return CG_FAILED;
	if (leaf->kept)
		return flock(leaf->fd, LOCK_EX | LOCK_NB) < 0 ? CG_FAILED : CG_MADE;
	answer     = lock_leaf_by_name(leaf->fd, leaf->base_fd, name);
	leaf->made = answer != CG_TAKEN; /* TAKEN: the name is another process's leaf by now, and not ours to remove */
	return answer;
}

static void close_leaf_base(struct cg_leaf *leaf)
{
	if (!leaf->kept)
		fd_closep(&leaf->base_fd);
	leaf->base_fd = -1;
}

static enum cg_answer make_cgroup_leaves(struct cg *g, const struct cg_parent *parent)
{
	for (size_t i = 0; i < parent->n; i++) {
		struct cg_leaf *leaf = &g->leaf[g->n];
		enum cg_answer  answer;

		*leaf = parent->base[i];
		if (!leaf->kept && (leaf->base_fd = fcntl(leaf->base_fd, F_DUPFD_CLOEXEC, 3)) < 0)
			return CG_FAILED;
		g->n++;
		answer = make_cgroup_leaf(leaf, g->name);
		/* The group above is another user's, or the tree is read-only: go on without its controllers. */
		if (answer == CG_FAILED && !leaf->made && (errno == EACCES || errno == EPERM || errno == EROFS)) {
			close_leaf_base(leaf);
			g->n--;
			continue;
		}
		if (answer != CG_MADE)
			return answer;
	}
	return CG_MADE;
}

enum cg_answer cg_make_in_parent(struct cg *ret, const struct cg_parent *parent, uint32_t slot, struct err *e)
{
	struct cg      g = { 0 };
	enum cg_answer answer;
	struct err     ignored;

	snprintf(g.name, sizeof g.name, "cell-%u", slot);
	snprintf(g.why, sizeof g.why, "%s", parent->why);
	answer = make_cgroup_leaves(&g, parent);
	if (answer == CG_FAILED)
		err_sys(e, "set-up step make-groups: %s", g.name);
	if (answer != CG_MADE) {
		(void)!cg_close(&g, &ignored);
		return answer;
	}
	*ret = g;
	return CG_MADE;
}

int cg_close(struct cg *g, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct cg_leaf *leaf = &g->leaf[i];

		if (leaf->made && remove_cgroup_leaf(leaf->base_fd, g->name) < 0)
			r = err_sys(e, "control group %s cannot be removed", g->name);
		if (leaf->borrowed)
			cg_dir_remove_brig_group(leaf->base_fd, leaf->v2);
		fd_closep(&leaf->join_fd);
		fd_closep(&leaf->fd);
		close_leaf_base(leaf);
	}
	g->n = 0;
	return r;
}

bool cg_remove(struct cg *g)
{
	bool all = true;

	for (size_t i = 0; i < g->n; i++) {
		struct cg_leaf *leaf = &g->leaf[i];

		if (leaf->made && unlinkat(leaf->base_fd, g->name, AT_REMOVEDIR) < 0 && errno != ENOENT) {
			all = false;
			continue;
		}
		leaf->made = false;
		fd_closep(&leaf->fd);
		close_leaf_base(leaf);
	}
	return all;
}

void cg_kill_members(const struct cg *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].fd >= 0)
			kill_cgroup_members(g->leaf[i].fd);
}

/* --- for supervisors with other ids --- */

static int lend_leaf(const struct cg_leaf *leaf, struct err *e)
{
	static const struct {
		bool        v2;
		unsigned    controller; /* 0: every leaf has the file */
		const char *file;
		mode_t      mode;
	} rows[] = {
		{ true, 0, "cgroup.kill", 0220 }, /* since 5.14; without it, PID 1 is killed */
		{ true, 0, "cgroup.freeze", 0664 },
		{ true, 0, "cgroup.procs", 0664 },
		{ true, CG_MEMORY, "memory.high", 0664 }, /* no limit: memory.max is, and stays ours */
		{ false, 0, "tasks", 0664 },
		{ false, CG_CPUACCT, "cpuacct.usage", 0664 }, /* cg_reset_counters() resets it */
		{ false, CG_MEMORY, "memory.max_usage_in_bytes", 0664 },
		{ false, CG_MEMORY, "cgroup.event_control", 0220 },
	};

	if (fchmod(leaf->fd, 0750) < 0)
		return err_sys(e, "set-up step make-groups: leaf");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (rows[i].v2 != leaf->v2 || (rows[i].controller && !(leaf->controllers & rows[i].controller)))
			continue;
		if (fchmodat(leaf->fd, rows[i].file, rows[i].mode, 0) < 0 && !(errno == ENOENT && i == 0))
			return err_sys(e, "set-up step make-groups: %s", rows[i].file);
	}
	return 0;
}

int cg_lend_to_supervisor(const struct cg *g, struct err *e)
{
	for (size_t i = 0; i < g->n; i++)
		if (lend_leaf(&g->leaf[i], e) < 0)
			return -1;
	return 0;
}

/* --- again for the next cell --- */

bool cg_is_empty(const struct cg *g)
{
	char first[2];

	for (size_t i = 0; i < g->n; i++)
		if (!cg_read_file(g->leaf[i].fd, "cgroup.procs", first, sizeof first) || first[0])
			return false;
	return true;
}

/* Removes an empty leaf, makes another with the same name, and lends it. */
static bool recreate_leaf(struct cg *g, struct cg_leaf *leaf)
{
	struct err ignored;

	if (leaf->made && unlinkat(leaf->base_fd, g->name, AT_REMOVEDIR) < 0)
		return false;
	leaf->made   = false;
	g->held.pids = 0;
	fd_closep(&leaf->fd);
	return make_cgroup_leaf(leaf, g->name) == CG_MADE && lend_leaf(leaf, &ignored) == 0;
}

bool cg_renew_for_next_cell(struct cg *g, bool *remade)
{
	if (!cg_is_empty(g))
		return false;
	for (size_t i = 0; i < g->n; i++) {
		if (cg_leaf_reset_counters(g, &g->leaf[i], false))
			continue;
		*remade = true;
		if (!recreate_leaf(g, &g->leaf[i]))
			return false;
	}
	return true;
}

void cg_clear_leftover_in(const struct cg_parent *parent, uint32_t slot)
{
	char name[32];

	snprintf(name, sizeof name, "cell-%u", slot);
	for (size_t i = 0; i < parent->n; i++)
		(void)!clear_leftover_leaf(parent->base[i].base_fd, name);
}
