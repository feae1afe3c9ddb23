#define _GNU_SOURCE
#include "gc.h"

#include "fd.h"
#include "store.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { LAYER_DAYS = 30 };

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

/* --- layers --- */

/*
 * Takes the name from a layer that no run has used for long. Its tree is then removed like any other without a name: a
 * run that began in between holds its lock.
 */
static int remove_layer_name_if_old(const struct tree_store *s, const struct tree_store_name *layer, bool dry,
				    bool *is_gone, struct err *e)
{
	char        path[128];
	struct stat st;

	snprintf(path, sizeof path, STORE_LAYERS "/%s", layer->name);
	*is_gone = fstatat(s->dir, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		   time(NULL) - st.st_mtime > LAYER_DAYS * 24 * 3600;
	return *is_gone && !dry && unlinkat(s->dir, path, 0) < 0 && errno != ENOENT ? err_sys(e, "remove %s", path) : 0;
}

/* Keeps the names of those that stay. */
static int remove_old_layer_names(const struct tree_store *s, struct tree_store_names *layers, bool dry, struct err *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < layers->n; i++) {
		bool is_gone;

		if (remove_layer_name_if_old(s, &layers->name[i], dry, &is_gone, e) < 0)
			return -1;
		if (!is_gone)
			layers->name[kept++] = layers->name[i];
	}
	layers->n = kept;
	return 0;
}

/* --- trees --- */

static bool names_have_digest(const struct tree_store_names *names, const char *digest)
{
	for (size_t i = 0; i < names->n; i++)
		if (strcmp(names->name[i].digest, digest) == 0)
			return true;
	return false;
}

static int remove_tree_if_unused(const struct tree_store *s, const char *digest, bool dry, FILE *out, struct err *e)
{
	scoped_fd lock = -1;

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
	scoped_shelf_names names = { 0 }, layers = { 0 }, trees = { 0 };
	unsigned           swept = 0;

	if (lock < 0 || tree_store_list_names(s, &names, e) < 0 || tree_store_list_layers(s, &layers, e) < 0 ||
	    remove_old_layer_names(s, &layers, dry, e) < 0 || tree_store_list_trees(s, &trees, e) < 0)
		return -1;
	for (size_t i = 0; i < trees.n; i++)
		if (!names_have_digest(&names, trees.name[i].digest) &&
		    !names_have_digest(&layers, trees.name[i].digest) &&
		    remove_tree_if_unused(s, trees.name[i].digest, dry, out, e) < 0)
			return -1;
	if (workspace_sweep(s->dir, dry, &swept, e) < 0)
		return -1;
	if (swept)
		fprintf(out, "%s %u unfinished build%s\n", dry ? "would remove" : "removed", swept,
			swept == 1 ? "" : "s");
	return 0;
}
