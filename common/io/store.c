#define _GNU_SOURCE
#include "store.h"

#include "fd.h"
#include "text.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINK_HEAD "../trees/"
#define TRIES     8 /* a rootfs that is rebuilt and collected eight times during one call means a fault */

bool store_is_digest(const char *text)
{
	return strspn(text, "0123456789abcdef") == STORE_DIGEST && !text[STORE_DIGEST];
}

static int refuse_missing_rootfs(const char *store, const char *name, struct err *e)
{
	return err_set(e, ERR_MISSING, "rootfs \"%s\" is not in the store %s; build it: brig rootfs build %s", name, store, name);
}

static int make_link_path(char path[STORE_PATH_MAX], const char *store, const char *folder, const char *name, struct err *e)
{
	return snprintf(path, STORE_PATH_MAX, "%s/%s/%s", store, folder, name) >= STORE_PATH_MAX
		       ? err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", store) : 0;
}

/* Reads the digest from a link, as data: the kernel never follows it. Kind MISSING without a text: there is none. */
static int read_link_digest(const char *path, char digest[STORE_DIGEST + 1], struct err *e)
{
	char    target[sizeof LINK_HEAD + STORE_DIGEST + 1];
	ssize_t n = readlink(path, target, sizeof target - 1);

	if (n < 0)
		return errno == ENOENT || errno == ENOTDIR ? err_set(e, ERR_MISSING, "%s", path) : err_sys(e, "%s", path);
	target[n] = 0;
	if (strncmp(target, LINK_HEAD, strlen(LINK_HEAD)) != 0 || !store_is_digest(target + strlen(LINK_HEAD)))
		return err_set(e, ERR_DENIED, "%s: not a link to ../trees/DIGEST; remove it and build the rootfs again", path);
	memcpy(digest, target + strlen(LINK_HEAD), STORE_DIGEST + 1);
	return 0;
}

static int read_name_link(const char *store, const char *name, char digest[STORE_DIGEST + 1], struct err *e)
{
	char path[STORE_PATH_MAX];

	if (make_link_path(path, store, STORE_NAMES, name, e) < 0)
		return -1;
	if (read_link_digest(path, digest, e) == 0)
		return 0;
	return e->kind == ERR_MISSING && !e->errnum ? refuse_missing_rootfs(store, name, e) : -1;
}

enum lock_answer { LOCK_TAKEN, LOCK_GONE, LOCK_FAILED };

/* A copy of a store has no locks, because nobody but its owner could copy them: the first process of the new owner makes each. */
static int make_lock(const char *path)
{
	char        name[STORE_PATH_MAX];
	scoped_fd   folder = -1; /* as it is now: in another user's store it may become a link to a folder of this one's */
	struct stat st;

	snprintf(name, sizeof name, "%.*s", (int)(strrchr(path, '/') - path), path);
	folder = open(name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0 || fstat(folder, &st) < 0)
		return -1;
	if (st.st_uid != geteuid()) {
		errno = EACCES;
		return -1;
	}
	return openat(folder, strrchr(path, '/') + 1, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
}

/*
 * Takes the shared lock, if the tree still exists. gc holds the lock exclusively
 * from its decision to its last unlink, so a lock file that this process has
 * locked and that still has a name belongs to a complete tree.
 */
static enum lock_answer lock_tree(const char *path, struct store_tree *t)
{
	struct stat st;

	t->lock_fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC); /* open() of a FIFO in another user's store does not wait */
	if (t->lock_fd < 0 && errno == ENOENT)
		t->lock_fd = make_lock(path);
	if (t->lock_fd < 0 && (errno == EROFS || (errno == EACCES && (lstat(path, &st) < 0 || st.st_uid != geteuid()))))
		return LOCK_TAKEN; /* another user's store has no lock for this one, and from one that cannot be written gc removes nothing: see store.h */
	if (t->lock_fd < 0)
		return errno == ENOENT ? LOCK_GONE : LOCK_FAILED;
	if (flock(t->lock_fd, LOCK_SH | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? LOCK_GONE : LOCK_FAILED;
	if (fstat(t->lock_fd, &st) < 0)
		return LOCK_FAILED;
	return st.st_nlink ? LOCK_TAKEN : LOCK_GONE;
}

/* A user who owns the tree, or may write into it, decides what runs: that must be root or this process's user. Everybody must be able to read it. */
static int check_tree_mode(const struct store_tree *t, struct err *e)
{
	struct stat st;

	if (fstat(t->tree_fd, &st) < 0)
		return err_sys(e, "%s", t->path);
	if (trust_stat_is_safe(&st) && (st.st_mode & 0555) == 0555)
		return 0;
	if (trust_stat_is_safe(&st)) /* as tar without p makes it under the umask 077 */
		return err_set(e, ERR_DENIED, "%s: mode %04o: programs in jails have ids of their own and could not read it; type: chmod -R go+rX '%.*s'",
			       t->path, st.st_mode & 07777, (int)(strlen(t->path) - strlen("/tree") - STORE_DIGEST - strlen("/trees/")), t->path);
	return err_set(e, ERR_DENIED, "%s: belongs to uid %u, mode %04o: it must be the caller's or root's, and no other may write to it; brig rootfs build makes one of your own",
		       t->path, st.st_uid, st.st_mode & 07777);
}

/* LOCK_TAKEN: *ret has the tree, and the caller owns it. */
static enum lock_answer try_open_tree(const char *store, const char *digest, struct store_tree *ret, struct err *e)
{
	scoped_store_tree t = STORE_TREE_NONE;
	char              lock[STORE_PATH_MAX];
	enum lock_answer  answer;

	memcpy(t.digest, digest, sizeof t.digest);
	if (snprintf(t.path, sizeof t.path, "%s/trees/%s/tree", store, t.digest) >= (int)sizeof t.path) {
		err_set(e, ERR_BAD_SPEC, "%.60s...: path too long", store);
		return LOCK_FAILED;
	}
	snprintf(lock, sizeof lock, "%.*slock", (int)(strlen(t.path) - strlen("tree")), t.path);
	answer = lock_tree(lock, &t);
	if (answer == LOCK_FAILED)
		err_sys(e, "%s", lock);
	if (answer != LOCK_TAKEN)
		return answer;
	t.tree_fd = open(t.path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t.tree_fd < 0 && errno == ENOENT) /* gc has moved it away after lock_tree() */
		return LOCK_GONE;
	if (t.tree_fd < 0) {
		err_sys(e, "%s", t.path);
		return LOCK_FAILED;
	}
	if (check_tree_mode(&t, e) < 0)
		return LOCK_FAILED;
	*ret = t;
	t    = STORE_TREE_NONE;
	return LOCK_TAKEN;
}

int store_open_tree(const char *store, const char *name, struct store_tree *ret, struct err *e)
{
	char digest[STORE_DIGEST + 1];

	if (!text_is_name(name))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is not a valid name of a rootfs; use a-z, 0-9, '-', '_', '.'", name);
	for (int i = 0; i < TRIES; i++) {
		if (read_name_link(store, name, digest, e) < 0)
			return -1;
		switch (try_open_tree(store, digest, ret, e)) {
		case LOCK_TAKEN:
			return 0;
		case LOCK_FAILED:
			return err_wrap(e, "rootfs %s", name);
		case LOCK_GONE: /* the name was linked to another tree after read_name_link(), or the tree was removed by hand */
			break;
		}
	}
	return refuse_missing_rootfs(store, name, e);
}

bool store_is_layer_key(const char *text)
{
	return strspn(text, "0123456789abcdef") == STORE_KEY && !text[STORE_KEY];
}

/* Once a day is enough, and a store that cannot be written to is another user's: its owner's gc counts. */
static void note_layer_use(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && time(NULL) - st.st_mtime > 24 * 3600)
		(void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

int store_open_layer(const char *store, const char *key, struct store_tree *ret, struct err *e)
{
	char path[STORE_PATH_MAX], digest[STORE_DIGEST + 1];

	if (make_link_path(path, store, STORE_LAYERS, key, e) < 0 || read_link_digest(path, digest, e) < 0)
		return -1;
	note_layer_use(path);
	switch (try_open_tree(store, digest, ret, e)) {
	case LOCK_TAKEN:
		return 0;
	case LOCK_FAILED:
		return err_wrap(e, "packages");
	case LOCK_GONE:
		break;
	}
	return err_set(e, ERR_MISSING, "%s", path);
}

int store_open_tree_in_first(const char *const stores[2], const char *name, struct store_tree *ret, struct err *e)
{
	struct err first;

	if (store_open_tree(stores[0], name, ret, &first) == 0)
		return 0;
	*e = first;
	if (first.kind != ERR_MISSING || !stores[1][0])
		return -1;
	if (store_open_tree(stores[1], name, ret, e) == 0)
		return 0;
	if (e->kind != ERR_MISSING)
		return -1;
	return err_set(e, ERR_MISSING, "rootfs \"%s\" is neither in your store %.150s nor in %.150s; build it: brig rootfs build %s", name,
		       stores[0], stores[1], name);
}

bool store_get_name_time(const char *const stores[2], const char *name, struct timespec *ret)
{
	char        path[STORE_PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < 2; i++)
		if (stores[i][0] && snprintf(path, sizeof path, "%s/names/%s", stores[i], name) < (int)sizeof path && lstat(path, &st) == 0) {
			*ret = st.st_mtim;
			return true;
		}
	return false;
}

int store_open_digest(const char *store, const char *digest, struct store_tree *ret, struct err *e)
{
	if (!store_is_digest(digest))
		return err_set(e, ERR_BAD_SPEC, "\"%.70s\" is no digest: 64 hex digits", digest);
	switch (try_open_tree(store, digest, ret, e)) {
	case LOCK_TAKEN:
		return 0;
	case LOCK_FAILED:
		return -1;
	case LOCK_GONE:
		break;
	}
	return err_set(e, ERR_MISSING, "no tree %s in the store %s; brig rootfs list shows what is there", digest, store);
}

void store_close(struct store_tree *t)
{
	fd_closep(&t->tree_fd);
	fd_closep(&t->lock_fd);
}
