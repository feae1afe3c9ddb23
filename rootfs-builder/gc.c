#define _GNU_SOURCE
#include "gc.h"

#include "fd.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

enum lock_answer { LOCK_OURS, LOCK_USED, LOCK_FAILED };

static enum lock_answer try_lock_tree(const struct tree_store *s, const char *digest, bool dry, int *lock)
{
	char path[160];

	snprintf(path, sizeof path, "trees/%s/lock", digest);
	/* a copied tree may have none yet (store.c), and then no process uses it */
	*lock = openat(s->dir, path, O_RDONLY | (dry ? 0 : O_CREAT) | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*lock < 0)
		return dry && errno == ENOENT ? LOCK_OURS : LOCK_FAILED;
	if (flock(*lock, LOCK_EX | LOCK_NB) == 0)
		return LOCK_OURS;
	return errno == EWOULDBLOCK ? LOCK_USED : LOCK_FAILED;
}

/*
 * The tree loses its place first, while it is locked: a process that opens the lock later finds no tree, and one that
 * has opened it before cannot take it, until the lock has no name any more (store.c).
 */
static int remove_tree(const struct tree_store *s, const char *digest, struct err *e)
{
	char path[160], aside[160];

	snprintf(path, sizeof path, "trees/%s", digest);
	snprintf(aside, sizeof aside, "tmp/gone-%s", digest);
	if (renameat(s->dir, path, s->dir, aside) < 0)
		return err_sys(e, "remove %s", path);
	return tree_remove(s->dir, aside, e);
}

static int remove_tree_if_unused(const struct tree_store *s, const struct tree_store_names *names,
				 const char *digest, bool dry, FILE *out, struct err *e)
{
	scoped_fd lock = -1;

	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->name[i].digest, digest) == 0)
			return 0;
	switch (try_lock_tree(s, digest, dry, &lock)) {
	case LOCK_USED:
		fprintf(out, "kept %s: in use\n", digest);
		return 0;
	case LOCK_FAILED:
		return err_sys(e, "the lock of tree %.12s", digest);
	case LOCK_OURS:
		break;
	}
	fprintf(out, "%s %s\n", dry ? "would remove" : "removed", digest);
	return dry ? 0 : remove_tree(s, digest, e);
}

int gc_run(const struct tree_store *s, bool dry, FILE *out, struct err *e)
{
	scoped_fd          lock  = tree_store_lock(s, e);
	scoped_shelf_names names = { 0 }, trees = { 0 };
	unsigned           swept = 0;

	if (lock < 0 || tree_store_list_names(s, &names, e) < 0 || tree_store_list_trees(s, &trees, e) < 0)
		return -1;
	for (size_t i = 0; i < trees.n; i++)
		if (remove_tree_if_unused(s, &names, trees.name[i].digest, dry, out, e) < 0)
			return -1;
	if (workspace_sweep(s->dir, dry, &swept, e) < 0)
		return -1;
	if (swept)
		fprintf(out, "%s %u unfinished build%s\n", dry ? "would remove" : "removed", swept,
			swept == 1 ? "" : "s");
	return 0;
}
