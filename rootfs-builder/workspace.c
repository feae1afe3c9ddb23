#define _GNU_SOURCE
#include "workspace.h"

#include "fd.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

/*
 * Opens tmp/ and locks it: between the making of a workspace and its lock, a
 * sweep would take the workspace for a dead one.
 */
static int open_and_lock_tmp(int store, struct err *e)
{
	scoped_fd tmp = openat(store, "tmp", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (tmp < 0 || flock(tmp, LOCK_EX) < 0)
		return err_sys(e, "the store's tmp/");
	return fd_take(&tmp);
}

int workspace_open(int store, struct workspace *ret, struct err *e)
{
	scoped_workspace w = WORKSPACE_NONE;
	uint64_t         dice;

	w.tmp = open_and_lock_tmp(store, e);
	if (w.tmp < 0)
		return -1;
	if (getrandom(&dice, sizeof dice, 0) != sizeof dice)
		return err_sys(e, "getrandom");
	snprintf(w.name, sizeof w.name, "build-%016llx", (unsigned long long)dice);
	if (mkdirat(w.tmp, w.name, 0700) < 0)
		return err_sys(e, "make tmp/%s in the store", w.name);
	w.dir = openat(w.tmp, w.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (w.dir < 0)
		return err_sys(e, "tmp/%s", w.name);
	/* 0600: a user who can open it could hold the lock */
	w.lock = openat(w.dir, "lock", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (w.lock < 0 || flock(w.lock, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "tmp/%s/lock", w.name);
	flock(w.tmp, LOCK_UN);
	*ret = w;
	w    = WORKSPACE_NONE;
	return 0;
}

void workspace_close(struct workspace *w)
{
	struct err e;

	/* tmp/ is locked, because the workspace's lock file is among the first to be removed. A later sweep removes
	 * what is left. */
	if (w->dir >= 0 && w->name[0] && flock(w->tmp, LOCK_EX) == 0 && tree_remove(w->tmp, w->name, &e) < 0)
		fprintf(stderr, "brig-rootfs: %s\n", e.text);
	fd_closep(&w->lock);
	fd_closep(&w->dir);
	fd_closep(&w->tmp);
}

struct sweep {
	bool      dry;
	unsigned *n;
};

static int sweep_workspace(void *context, int tmp, const char *name, struct err *e)
{
	const struct sweep *s = context;
	char                path[WORKSPACE_NAME + 300];

	snprintf(path, sizeof path, "%.255s/lock", name);
	scoped_fd lock = openat(tmp, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0) /* its builder lives */
		return 0;
	++*s->n;
	return s->dry ? 0 : tree_remove(tmp, name, e);
}

int workspace_sweep(int store, bool dry, unsigned *n, struct err *e)
{
	scoped_fd    tmp = open_and_lock_tmp(store, e);
	struct sweep s   = { dry, n };

	if (tmp < 0)
		return -1;
	return tree_each_in_dir(openat(tmp, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "the store's tmp/",
				sweep_workspace, &s, e);
}
