#define _GNU_SOURCE
#include "tree.h"

#include "fd.h"
#include "file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_resolved(int root, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = { .flags = (uint64_t)flags | O_CLOEXEC, .resolve = resolve | RESOLVE_NO_MAGICLINKS };
	int             fd;

	while (*path == '/')
		path++;
	/* openat2() fails with EAGAIN if a rename anywhere on the machine races with the lookup of "..". */
	do
		fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
	while (fd < 0 && errno == EAGAIN);
	return fd;
}

int tree_open(int root, const char *path, int flags)
{
	return open_resolved(root, path, flags, RESOLVE_IN_ROOT);
}

int tree_open_entry(int root, const struct tree_entry *entry, int flags)
{
	return open_resolved(root, entry->path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
}

int tree_open_parent(int root, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	char        parent[PATH_MAX];

	if (!slash || (size_t)(slash - path) >= sizeof parent) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = 0;
	*name                = slash + 1;
	return tree_open(root, parent, O_PATH | O_DIRECTORY);
}

/* --- scanning --- */

struct scan {
	struct tree tree;
	char        path[PATH_MAX];
	struct err *e;
};

static int scan_failed(struct scan *s)
{
	return err_sys(s->e, "scan the tree: %.300s", s->path);
}

static enum tree_type type_of(mode_t mode)
{
	return S_ISREG(mode) ? TREE_FILE : S_ISDIR(mode) ? TREE_DIR : S_ISLNK(mode) ? TREE_LINK : TREE_OTHER;
}

static struct tree_entry *add_entry(struct scan *s)
{
	struct tree *t = &s->tree;

	if (t->n == TREE_ENTRIES_MAX) {
		err_set(s->e, ERR_LIMIT, "more than %d entries in the tree", TREE_ENTRIES_MAX);
		return NULL;
	}
	if (t->n == t->room) {
		size_t             room = t->room ? t->room * 2 : 4096;
		struct tree_entry *more = realloc(t->entry, room * sizeof *more);

		if (!more) {
			err_set(s->e, ERR_LIMIT, "scan the tree: out of memory");
			return NULL;
		}
		t->entry = more;
		t->room  = room;
	}
	return memset(&t->entry[t->n++], 0, sizeof *t->entry);
}

static int read_target(struct scan *s, int dir, const char *name, struct tree_entry *entry)
{
	char    target[PATH_MAX];
	ssize_t n = readlinkat(dir, name, target, sizeof target - 1);

	if (n < 0)
		return scan_failed(s);
	target[n]     = 0;
	entry->target = strdup(target);
	return entry->target ? 0 : err_set(s->e, ERR_LIMIT, "scan the tree: out of memory");
}

static int scan_dir(struct scan *s, int dir, size_t len, int depth);

static int scan_entry(struct scan *s, int dir, const char *name, size_t len, int depth)
{
	struct stat        st;
	struct tree_entry *entry;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return scan_failed(s);
	entry = add_entry(s);
	if (!entry)
		return -1;
	*entry = (struct tree_entry){
		.path  = strdup(s->path),
		.type  = type_of(st.st_mode),
		.mode  = st.st_mode & 07777,
		.links = (unsigned)st.st_nlink,
		.uid   = st.st_uid,
		.gid   = st.st_gid,
		.size  = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
	};
	if (!entry->path)
		return err_set(s->e, ERR_LIMIT, "scan the tree: out of memory");
	if (entry->type == TREE_LINK)
		return read_target(s, dir, name, entry);
	if (entry->type != TREE_DIR)
		return 0;
	scoped_fd below = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return below < 0 ? scan_failed(s) : scan_dir(s, fd_take(&below), len, depth + 1);
}

/* Closes dir. */
static int scan_dir(struct scan *s, int dir, size_t len, int depth)
{
	scoped_dir *d = fdopendir(dir);

	if (!d) {
		close(dir);
		return scan_failed(s);
	}
	if (depth > TREE_DEPTH_MAX)
		return err_set(s->e, ERR_LIMIT, "more than %d directories deep: %.200s", TREE_DEPTH_MAX, s->path);
	for (struct dirent *at; errno = 0, at = readdir(d);) {
		size_t end = len + 1 + strlen(at->d_name);

		if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0)
			continue;
		if (end >= sizeof s->path)
			return err_set(s->e, ERR_LIMIT, "path too long below %.200s", s->path);
		snprintf(s->path + len, sizeof s->path - len, "/%s", at->d_name);
		if (scan_entry(s, dirfd(d), at->d_name, end, depth) < 0)
			return -1;
		s->path[len] = 0;
	}
	return errno ? scan_failed(s) : 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

int tree_scan(int root, struct tree *ret, struct err *e)
{
	struct scan s   = { .e = e };
	scoped_fd   top = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		return err_sys(e, "scan the tree");
	if (scan_dir(&s, fd_take(&top), 0, 0) < 0) {
		tree_done(&s.tree);
		return -1;
	}
	if (s.tree.n)
		qsort(s.tree.entry, s.tree.n, sizeof *s.tree.entry, by_path);
	*ret = s.tree;
	return 0;
}

void tree_done(struct tree *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->entry[i].path);
		free(t->entry[i].target);
	}
	free(t->entry);
	*t = (struct tree){ 0 };
}

const struct tree_entry *tree_find(const struct tree *t, const char *path)
{
	struct tree_entry key = { .path = (char *)path };

	return t->n ? bsearch(&key, t->entry, t->n, sizeof key, by_path) : NULL;
}

/* --- changing --- */

bool tree_path_is_plain(const char *path)
{
	if (path[0] != '/' || strlen(path) >= PATH_MAX - 256 || !text_is_plain(path))
		return false;
	for (const char *p = path; *p;) {
		size_t n = strcspn(++p, "/");

		if (n == 0 || n > NAME_MAX || (p[0] == '.' && (n == 1 || (n == 2 && p[1] == '.'))))
			return false;
		p += n;
	}
	return true;
}

/* Makes one directory. An existing entry must be a directory, or a link to one inside the tree. */
static int make_step(int root, const char *path, struct err *e)
{
	const char *name;
	scoped_fd   is = tree_open(root, path, O_PATH | O_DIRECTORY);

	if (is >= 0)
		return 0;
	scoped_fd parent = errno == ENOENT ? tree_open_parent(root, path, &name) : -1;

	if (parent < 0 || mkdirat(parent, name, 0755) < 0)
		return err_sys(e, "make the directory %s", path);
	return 0;
}

int tree_make_dir(int root, const char *path, struct err *e)
{
	char step[PATH_MAX];

	for (const char *end = path; *end;) {
		end += 1 + strcspn(end + 1, "/");
		snprintf(step, sizeof step, "%.*s", (int)(end - path), path);
		if (make_step(root, step, e) < 0)
			return -1;
	}
	return 0;
}

/* Opens the parent, after removing an entry of that name; a directory is not removed, and is an error. */
static int open_place(int root, const char *path, const char **name, struct err *e)
{
	scoped_fd parent = tree_open_parent(root, path, name);

	if (parent < 0)
		return err_sys(e, "%s: its directory (a row of dirs makes one)", path);
	if (unlinkat(parent, *name, 0) < 0 && errno != ENOENT)
		return err_sys(e, "replace %s", path);
	return fd_take(&parent);
}

int tree_write(int root, const char *path, const void *bytes, size_t len, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = open_place(root, path, &name, e);

	if (parent < 0)
		return -1;
	scoped_fd fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || file_write_all(fd, bytes, len) < 0)
		return err_sys(e, "write %s", path);
	return 0;
}

int tree_link(int root, const char *path, const char *target, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = open_place(root, path, &name, e);

	if (parent < 0)
		return -1;
	return symlinkat(target, parent, name) < 0 ? err_sys(e, "link %s", path) : 0;
}

/* --- removing --- */

/* A directory that is too deep to keep all those above it open is moved next to the removed one, and removed after it. */
struct removal {
	int         top;
	unsigned    aside;
	struct err *e;
};

static void name_aside(char name[32], unsigned n)
{
	snprintf(name, 32, ".remove-%u", n);
}

static int put_aside(struct removal *r, int dir, const char *name)
{
	char to[32];

	name_aside(to, r->aside);
	if ((geteuid() != 0 && fchmodat(dir, name, 0700, 0) < 0) || renameat(dir, name, r->top, to) < 0)
		return err_sys(r->e, "remove %s", name);
	r->aside++;
	return 0;
}

static int remove_at(struct removal *r, int dir, const char *name, int depth);

/* An archive can make directories that even their owner can neither read nor write to. */
static int open_dir(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0)
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && geteuid() != 0)
		(void)!fchmod(fd, 0700);
	return fd;
}

static int remove_below(struct removal *r, int dir, const char *name, int depth)
{
	scoped_fd fd = open_dir(dir, name);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(r->e, "remove %s", name);
	scoped_dir *d = fdopendir(fd);

	if (!d)
		return err_sys(r->e, "remove %s", name);
	fd_take(&fd);
	for (struct dirent *at; (at = readdir(d));)
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0 && remove_at(r, dirfd(d), at->d_name, depth + 1) < 0)
			return -1;
	return 0;
}

static int remove_at(struct removal *r, int dir, const char *name, int depth)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(r->e, "remove %s", name);
	if (depth > 2 * TREE_DEPTH_MAX)
		return put_aside(r, dir, name);
	if (remove_below(r, dir, name, depth) < 0)
		return -1;
	if (unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(r->e, "remove %s", name);
	return 0;
}

int tree_remove(int dir, const char *name, struct err *e)
{
	struct removal r = { .top = dir, .e = e };
	char           aside[32];

	if (remove_at(&r, dir, name, 0) < 0)
		return -1;
	for (unsigned n = 0; n < r.aside; n++) {
		name_aside(aside, n);
		if (remove_at(&r, dir, aside, 0) < 0)
			return -1;
	}
	return 0;
}
