#define _GNU_SOURCE
#include "tree.h"

#include "fd.h"
#include "file.h"
#include "text.h"

#include <dirent.h>
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

static int openat2_in_tree(int root, const char *path, int flags, uint64_t resolve)
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
	return openat2_in_tree(root, path, flags, RESOLVE_IN_ROOT);
}

bool tree_path_has_type(int root, const char *path, mode_t type)
{
	scoped_fd   fd = tree_open(root, path, O_PATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

int tree_open_entry(int root, const struct tree_entry *entry, int flags)
{
	return openat2_in_tree(root, entry->path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
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

/* --- all entries of a directory --- */

static void tree_closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

int tree_each_in_dir(int dir, const char *path, tree_visit visit, void *context, struct err *e)
{
	scoped(tree_closedirp) DIR *d = dir < 0 ? NULL : fdopendir(dir);
	int                         r = 0;

	if (!d) {
		err_sys(e, "%.300s", path);
		if (dir >= 0)
			close(dir);
		return -1;
	}
	for (struct dirent *at; r == 0 && (errno = 0, at = readdir(d));)
		if (strcmp(at->d_name, ".") != 0 && strcmp(at->d_name, "..") != 0)
			r = visit(context, dirfd(d), at->d_name, e);
	return r == 0 && errno ? err_sys(e, "%.300s", path) : r;
}

int tree_read_link(int dir, const char *name, char target[PATH_MAX])
{
	ssize_t n = readlinkat(dir, name, target, PATH_MAX - 1);

	target[n < 0 ? 0 : n] = 0;
	return n < 0 ? -1 : 0;
}

/* --- scanning --- */

struct scan {
	struct tree tree;
	char        path[PATH_MAX];
	unsigned    depth;
};

static struct tree_entry *add_tree_entry(struct tree *t, struct err *e)
{
	if (t->n == TREE_ENTRIES_MAX) {
		err_set(e, ERR_LIMIT, "more than %d entries in the tree", TREE_ENTRIES_MAX);
		return NULL;
	}
	if (t->n == t->room) {
		size_t             room = t->room ? t->room * 2 : 4096;
		struct tree_entry *more = realloc(t->entry, room * sizeof *more);

		if (!more) {
			err_set(e, ERR_LIMIT, "scan the tree: out of memory");
			return NULL;
		}
		t->entry = more;
		t->room  = room;
	}
	return memset(&t->entry[t->n++], 0, sizeof *t->entry);
}

static int scan_entry(void *context, int dir, const char *name, struct err *e)
{
	struct scan       *s   = context;
	size_t             len = strlen(s->path);
	char               target[PATH_MAX];
	struct stat        st;
	struct tree_entry *entry;
	int                r = 0;

	if (len + 1 + strlen(name) >= sizeof s->path)
		return err_set(e, ERR_LIMIT, "path too long below %.200s", s->path);
	snprintf(s->path + len, sizeof s->path - len, "/%s", name);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (S_ISLNK(st.st_mode) && tree_read_link(dir, name, target) < 0))
		return err_sys(e, "scan the tree: %.300s", s->path);
	entry = add_tree_entry(&s->tree, e);
	if (!entry)
		return -1;
	*entry = (struct tree_entry){
		.path   = strdup(s->path),
		.target = S_ISLNK(st.st_mode) ? strdup(target) : NULL,
		.type   = S_ISREG(st.st_mode)   ? TREE_FILE
			  : S_ISDIR(st.st_mode) ? TREE_DIR
			  : S_ISLNK(st.st_mode) ? TREE_LINK
						: TREE_OTHER,
		.mode   = st.st_mode & 07777,
		.links  = (unsigned)st.st_nlink,
		.uid    = st.st_uid,
		.gid    = st.st_gid,
		.size   = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0,
	};
	if (!entry->path || (entry->type == TREE_LINK && !entry->target))
		return err_set(e, ERR_LIMIT, "scan the tree: out of memory");
	if (entry->type == TREE_DIR) {
		if (++s->depth > TREE_DEPTH_MAX)
			return err_set(e, ERR_LIMIT, "more than %d directories deep: %.200s", TREE_DEPTH_MAX, s->path);
		r = tree_each_in_dir(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), s->path,
				     scan_entry,
				     s, e);
		s->depth--;
	}
	s->path[len] = 0;
	return r;
}

static int compare_entry_paths(const void *a, const void *b)
{
	return strcmp(((const struct tree_entry *)a)->path, ((const struct tree_entry *)b)->path);
}

int tree_scan(int root, struct tree *ret, struct err *e)
{
	struct scan s = { 0 };

	if (tree_each_in_dir(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "/ of the tree", scan_entry, &s,
			     e) < 0) {
		tree_done(&s.tree);
		return -1;
	}
	if (s.tree.n)
		qsort(s.tree.entry, s.tree.n, sizeof *s.tree.entry, compare_entry_paths);
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

	return t->n ? bsearch(&key, t->entry, t->n, sizeof key, compare_entry_paths) : NULL;
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

int tree_make_dir(int root, const char *path, struct err *e)
{
	char        step[PATH_MAX];
	const char *name = "";

	for (const char *end = path; *end;) {
		end += 1 + strcspn(end + 1, "/");
		snprintf(step, sizeof step, "%.*s", (int)(end - path), path);
		/* a directory, or a link to one inside the tree */
		scoped_fd is = tree_open(root, step, O_PATH | O_DIRECTORY);

		if (is >= 0)
			continue;
		scoped_fd parent = errno == ENOENT ? tree_open_parent(root, step, &name) : -1;

		if (parent < 0 || mkdirat(parent, name, 0755) < 0)
			return err_sys(e, "make the directory %s", step);
	}
	return 0;
}

/* Opens the parent, after removing an entry of that name; a directory is not removed, and is an error. */
static int open_parent_to_replace(int root, const char *path, const char **name, struct err *e)
{
	scoped_fd parent = tree_open_parent(root, path, name);

	if (parent < 0)
		return err_sys(e, "%s: its directory (a row of dirs makes one)", path);
	if (unlinkat(parent, *name, 0) < 0 && errno != ENOENT)
		return err_sys(e, "replace %s", path);
	return fd_take(&parent);
}

int tree_copy_bytes(int from, int to, uint64_t most)
{
	char block[64 * 1024];

	while (most) {
		ssize_t n = read(from, block, most < sizeof block ? (size_t)most : sizeof block);

		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || file_write_all(to, block, (size_t)n) < 0)
			return -1;
		most -= (uint64_t)n;
	}
	return 0;
}

int tree_write(int root, const char *path, const void *bytes, size_t len, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = open_parent_to_replace(root, path, &name, e);

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
	scoped_fd   parent = open_parent_to_replace(root, path, &name, e);

	if (parent < 0)
		return -1;
	return symlinkat(target, parent, name) < 0 ? err_sys(e, "link %s", path) : 0;
}

/* --- removing --- */

/* A directory that is too deep to keep all those above it open is moved next to the removed one, and removed after it.
 */
struct removal {
	int      top;
	unsigned aside, depth;
};
#define ASIDE ".remove-%u"

/* An archive can make directories that even their owner can neither read nor write to. */
static int open_dir_to_remove(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == EACCES && fchmodat(dir, name, 0700, 0) == 0)
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && geteuid() != 0)
		(void)!fchmod(fd, 0700);
	return fd;
}

static int remove_entry(void *context, int dir, const char *name, struct err *e)
{
	struct removal *r = context;
	char            aside[32];
	int             below, bad;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, "remove %s", name);
	if (r->depth > 2 * TREE_DEPTH_MAX) {
		snprintf(aside, sizeof aside, ASIDE, r->aside++);
		bad = (geteuid() != 0 && fchmodat(dir, name, 0700, 0) < 0) || renameat(dir, name, r->top, aside) < 0;
		return bad ? err_sys(e, "remove %s", name) : 0;
	}
	below = open_dir_to_remove(dir, name);
	if (below < 0)
		return errno == ENOENT ? 0 : err_sys(e, "remove %s", name);
	r->depth++;
	bad = tree_each_in_dir(below, name, remove_entry, r, e);
	r->depth--;
	if (bad == 0 && unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_sys(e, "remove %s", name);
	return bad;
}

int tree_remove(int dir, const char *name, struct err *e)
{
	struct removal r = { .top = dir };
	char           aside[32];

	if (remove_entry(&r, dir, name, e) < 0)
		return -1;
	for (unsigned n = 0; n < r.aside; n++) {
		snprintf(aside, sizeof aside, ASIDE, n);
		if (remove_entry(&r, dir, aside, e) < 0)
			return -1;
	}
	return 0;
}

int tree_remove_path(int root, const char *path, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = tree_open_parent(root, path, &name);

	if (parent < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "remove %.200s", path);
	return tree_remove(parent, name, e);
}
