#define _GNU_SOURCE
#include "tree_store.h"

#include "fd.h"
#include "manifest.h"
#include "store.h"
#include "text.h"
#include "trust.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

/* The mark for a recipe's digest and the builder's version: when the number changes, trees are built again. */
#define MARK "recipes/%s.1"

void tree_store_close(struct tree_store *s)
{
	fd_closep(&s->dir);
}

static int make_store_path(const char *path, struct err *e)
{
	char step[1024];

	for (const char *end = path; *end;) {
		end += 1 + strcspn(end + 1, "/");
		snprintf(step, sizeof step, "%.*s", (int)(end - path), path);
		if (mkdir(step, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make the store %s", step);
	}
	return 0;
}

static int make_store_dirs(const struct tree_store *s, struct err *e)
{
	/* Builders lock trees and tmp. A user who can open one of them for reading could lock it, and they would wait
	 * for ever. */
	static const struct {
		const char *name;
		mode_t      mode;
	} parts[] = { { "trees", 0711 }, { STORE_NAMES, 0755 }, { STORE_LAYERS, 0755 }, { "tmp", 0700 } };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		if (mkdirat(s->dir, parts[i].name, parts[i].mode) == 0)
			continue;
		/* made by an older version */
		if (errno != EEXIST || fchmodat(s->dir, parts[i].name, parts[i].mode, 0) < 0)
			return err_sys(e, "make %s/%s", s->path, parts[i].name);
	}
	return 0;
}

int tree_store_open(const char *path, struct tree_store *ret, struct err *e)
{
	scoped_shelf s = TREE_STORE_NONE;
	char         full[PATH_MAX];

	s.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s.dir < 0 && errno == ENOENT)
		return err_set(e, ERR_MISSING, "no store %s yet; brig rootfs build basic makes it", path);
	if (s.dir < 0)
		return err_sys(e, "the store %s", path);
	if (!realpath(path, full) || strlen(full) >= sizeof s.path)
		return err_set(e, ERR_BAD_SPEC, "the store %.60s...: path too long", path);
	memcpy(s.path, full, strlen(full) + 1);
	*ret = s;
	s    = TREE_STORE_NONE;
	return 0;
}

int tree_store_make(const char *path, struct tree_store *ret, struct err *e)
{
	scoped_shelf s = TREE_STORE_NONE;

	if (strlen(path) >= sizeof s.path - 100)
		return err_set(e, ERR_BAD_SPEC, "the store %.60s...: path too long", path);
	if (make_store_path(path, e) < 0 || tree_store_open(path, &s, e) < 0 || make_store_dirs(&s, e) < 0)
		return -1;
	*ret = s;
	s    = TREE_STORE_NONE;
	return 0;
}

int tree_store_lock(const struct tree_store *s, struct err *e)
{
	scoped_fd trees = openat(s->dir, "trees", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (trees < 0 || flock(trees, LOCK_EX) < 0)
		return err_sys(e, "lock %s/trees", s->path);
	return fd_take(&trees);
}

/* --- marks --- */

int tree_store_mark(int tree_dir, const char *recipe_sha256, struct err *e)
{
	char path[128];

	snprintf(path, sizeof path, MARK, recipe_sha256);
	if (mkdirat(tree_dir, "recipes", 0755) < 0 && errno != EEXIST)
		return err_sys(e, "recipes/");
	scoped_fd fd = openat(tree_dir, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 ? err_sys(e, "%s", path) : 0;
}

bool tree_store_is_marked(const struct tree_store *s, const char *digest, const char *recipe_sha256)
{
	char path[256];

	snprintf(path, sizeof path, "trees/%s/" MARK, digest, recipe_sha256);
	return faccessat(s->dir, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* --- publishing --- */

/* Renames a new link over the old one, so that a reader of the name sees one or the other. */
static int link_name_to_tree(const struct tree_store *s, const struct workspace *w, const char *folder,
			     const char *name, const char *digest, struct err *e)
{
	char target[128], path[128];

	snprintf(target, sizeof target, "../trees/%s", digest);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	if (symlinkat(target, w->dir, "name") < 0)
		return err_sys(e, "link %s", name);
	if (renameat(w->dir, "name", s->dir, path) < 0)
		return err_sys(e, "%s/%s", s->path, path);
	return 0;
}

static int fsync_store_dir(const struct tree_store *s, const char *name, struct err *e)
{
	scoped_fd fd = openat(s->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? err_sys(e, "sync %s/%s", s->path, name) : 0;
}

/*
 * From here on other users can read the tree. The lock file stays the owner's
 * alone (0600), because a user who can open it could hold the lock for ever.
 * Changing an exclusive lock to a shared one drops it for a moment, in which a
 * sweep would take the workspace for a dead one: the lock on tmp/ prevents that.
 */
static int move_tree_in(const struct tree_store *s, struct workspace *w, const char *place, struct err *e)
{
	if (flock(w->tmp, LOCK_EX) < 0)
		return err_sys(e, "lock %s/tmp", s->path);
	if (fchmod(w->dir, 0755) < 0 || flock(w->lock, LOCK_SH | LOCK_NB) < 0)
		return err_sys(e, "open %s to others", place);
	if (renameat2(w->tmp, w->name, s->dir, place, RENAME_NOREPLACE) < 0)
		return err_sys(e, "publish %s/%s", s->path, place);
	w->name[0] = 0;
	flock(w->tmp, LOCK_UN);
	return 0;
}

/* False also if this user's runs would refuse the tree because of its owner, as root's runs refuse a tree that another
 * user built. */
static bool stored_tree_is_sound(const struct tree_store *s, const char *place, const char *digest)
{
	scoped_manifest m = { 0 };
	struct stat     st;
	struct err      e;
	char            path[160];

	snprintf(path, sizeof path, "%s/tree", place);
	scoped_fd root = openat(s->dir, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (root < 0 || fstat(root, &st) < 0 || !trust_stat_is_safe(&st))
		return false;
	return manifest_make(root, &m, &e) == 0 && strcmp(m.digest, digest) == 0;
}

/*
 * The same content may be in the store already, from another recipe or an
 * earlier build: then that tree is only marked with this recipe. It is checked
 * first, so that building again repairs a damaged tree, or one that belongs to
 * another user.
 */
static int place_or_mark_tree(const struct tree_store *s, struct workspace *w, const char *digest,
			      const struct recipe *r, struct err *e)
{
	char place[128], aside[WORKSPACE_NAME + 32];

	snprintf(place, sizeof place, "trees/%s", digest);
	scoped_fd there = openat(s->dir, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (there >= 0 && stored_tree_is_sound(s, place, digest))
		return tree_store_mark(there, r->sha256, e);
	/* Runs that use the old tree go on. workspace_sweep() removes it when the last of them has ended. */
	snprintf(aside, sizeof aside, "tmp/damaged-%s", w->name);
	if (there >= 0 && renameat(s->dir, place, s->dir, aside) < 0)
		return err_sys(e, "move the old %s aside", place);
	return move_tree_in(s, w, place, e);
}

int tree_store_publish(const struct tree_store *s, struct workspace *w, const char *digest, const char *folder,
		       const struct recipe *r, struct err *e)
{
	if (tree_store_mark(w->dir, r->sha256, e) < 0)
		return -1;
	/* one call for four thousand files; fsync() of each would take minutes on a slow disk */
	if (syncfs(w->dir) < 0)
		return err_sys(e, "sync the tree");
	scoped_fd lock = tree_store_lock(s, e);

	if (lock < 0 || place_or_mark_tree(s, w, digest, r, e) < 0)
		return -1;
	if (fsync_store_dir(s, "trees", e) < 0 || link_name_to_tree(s, w, folder, r->name, digest, e) < 0)
		return -1;
	return fsync_store_dir(s, folder, e);
}

/* --- lists --- */

void tree_store_names_done(struct tree_store_names *n)
{
	free(n->name);
	*n = (struct tree_store_names){ 0 };
}

static int add_store_name(struct tree_store_names *to, const char *name, const char *digest, struct err *e)
{
	struct tree_store_name *more = realloc(to->name, (to->n + 1) * sizeof *more);

	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	to->name = more;
	snprintf(more[to->n].name, sizeof more->name, "%s", name);
	snprintf(more[to->n].digest, sizeof more->digest, "%s", digest);
	to->n++;
	return 0;
}

/* Adds a link of names/. Its digest is empty if it does not point to a tree. */
static int add_name_from_link(void *names, int dir, const char *name, struct err *e)
{
	static const char head[] = "../trees/";
	char              target[PATH_MAX];
	bool is_tree = tree_read_link(dir, name, target) == 0 && strncmp(target, head, strlen(head)) == 0 &&
		       store_is_digest(target + strlen(head));

	return text_is_name(name) ? add_store_name(names, name, is_tree ? target + strlen(head) : "", e) : 0;
}

static int add_tree_digest(void *names, int dir, const char *name, struct err *e)
{
	(void)dir;
	return store_is_digest(name) ? add_store_name(names, "", name, e) : 0;
}

static int compare_store_names(const void *a, const void *b)
{
	const struct tree_store_name *x = a, *y = b;
	int                           d = strcmp(x->name, y->name);

	return d ? d : strcmp(x->digest, y->digest);
}

static int list_store_dir(const struct tree_store *s, const char *part, tree_visit add,
			  struct tree_store_names *ret, struct err *e)
{
	scoped_shelf_names names = { 0 };
	char               path[sizeof s->path + 8];

	snprintf(path, sizeof path, "%s/%s", s->path, part);
	if (tree_each_in_dir(openat(s->dir, part, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path, add, &names, e) < 0)
		return -1;
	if (names.n)
		qsort(names.name, names.n, sizeof *names.name, compare_store_names);
	*ret  = names;
	names = (struct tree_store_names){ 0 };
	return 0;
}

int tree_store_list_names(const struct tree_store *s, struct tree_store_names *ret, struct err *e)
{
	return list_store_dir(s, STORE_NAMES, add_name_from_link, ret, e);
}

int tree_store_list_layers(const struct tree_store *s, struct tree_store_names *ret, struct err *e)
{
	/* a store that an older version has made */
	if (faccessat(s->dir, STORE_LAYERS, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT) {
		*ret = (struct tree_store_names){ 0 };
		return 0;
	}
	return list_store_dir(s, STORE_LAYERS, add_name_from_link, ret, e);
}

int tree_store_list_trees(const struct tree_store *s, struct tree_store_names *ret, struct err *e)
{
	return list_store_dir(s, "trees", add_tree_digest, ret, e);
}
