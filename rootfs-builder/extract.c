#define _GNU_SOURCE
#include "extract.h"

#include "fd.h"
#include "file.h"
#include "text.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- names --- */

static int err_bad_entry_name(const char *name, const char *why, struct err *e)
{
	char shown[200];

	snprintf(shown, sizeof shown, "%s", name);
	text_make_plain(shown);
	return err_set(e, ERR_BAD_SPEC, "\"%s\": %s", shown, why);
}

int extract_normalize_path(const char *name, char path[PATH_MAX], struct err *e)
{
	size_t len = 0, depth = 0;

	if (!text_is_plain(name))
		return err_bad_entry_name(name, "its name is not printable UTF-8", e);
	for (const char *at = name; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && at[0] == '.' && at[1] == '.')
			return err_bad_entry_name(name, "its name climbs out of the tree", e);
		if (n && !(n == 1 && at[0] == '.')) {
			if (n > NAME_MAX || len + 1 + n >= PATH_MAX - 256 || ++depth > TREE_DEPTH_MAX)
				return err_bad_entry_name(name,
							  "its name is too long, or more than 64 directories deep", e);
			path[len++] = '/';
			memcpy(path + len, at, n);
			len += n;
		}
		at += n + strspn(at + n, "/");
	}
	path[len] = 0;
	return 0;
}

/* --- bounds --- */

static int extract_count_entry(struct extraction *p, const char *path, uint64_t bytes, struct err *e)
{
	char most[32];

	if (++p->entries > TREE_ENTRIES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d entries", TREE_ENTRIES_MAX);
	if (__builtin_add_overflow(p->bytes, bytes, &p->bytes) || p->bytes > p->bytes_max)
		return err_set(e, ERR_LIMIT,
			       "%.200s: up to here all files together have more than %s; --size-max allows more", path,
			       text_from_size(p->bytes_max, most, sizeof most));
	return 0;
}

int extract_skip_entry(struct extraction *p, struct err *e)
{
	p->left_out++;
	return extract_count_entry(p, "", 0, e);
}

/* --- places --- */

/* Opens the entry's directory, and makes it if it is missing: archives need not name each directory. */
static int open_or_make_parent(struct extraction *p, const char *path, const char **name, struct err *e)
{
	char parent[PATH_MAX];
	int  fd = tree_open_parent(p->root, path, name);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? err_sys(e, "%.200s", path) : fd;
	snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(path, '/') - path), path);
	for (const char *at = parent; *at; at++)
		p->entries += *at == '/';
	if (tree_make_dir(p->root, parent, e) < 0)
		return -1;
	fd = tree_open_parent(p->root, path, name);
	return fd < 0 ? err_sys(e, "%.200s", path) : fd;
}

/* Opens the parent, after removing an entry of that name: a later entry replaces an earlier one. */
static int open_parent_and_clear(struct extraction *p, const char *path, const char **name, struct err *e)
{
	scoped_fd parent = -1;

	if (!*path)
		return err_set(e, ERR_BAD_SPEC, "the root of the tree is no directory there");
	parent = open_or_make_parent(p, path, name, e);
	if (parent < 0 || tree_remove(parent, *name, e) < 0)
		return -1;
	return fd_take(&parent);
}

int extract_dir(struct extraction *p, const char *path, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = -1;
	struct stat st;

	if (!*path) /* the root itself exists */
		return 0;
	if (extract_count_entry(p, path, 0, e) < 0)
		return -1;
	parent = open_or_make_parent(p, path, &name, e);
	if (parent < 0)
		return -1;
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
		return 0;
	if (tree_remove(parent, name, e) < 0)
		return -1;
	return mkdirat(parent, name, 0755) < 0 ? err_sys(e, "%.200s", path) : 0;
}

int extract_file(struct extraction *p, const char *path, uint64_t size, unsigned mode, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = -1, fd = -1;

	if (extract_count_entry(p, path, size, e) < 0)
		return -1;
	parent = open_parent_and_clear(p, path, &name, e);
	if (parent < 0)
		return -1;
	p->set_id += (mode & (S_ISUID | S_ISGID)) != 0;
	fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & S_IXUSR ? 0755 : 0644);
	return fd < 0 ? err_sys(e, "%.200s", path) : fd_take(&fd);
}

int extract_link(struct extraction *p, const char *path, const char *target, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = -1;

	if (extract_count_entry(p, path, 0, e) < 0)
		return -1;
	if (!*target || !text_is_plain(target))
		return err_bad_entry_name(path, "its target is not printable UTF-8", e);
	parent = open_parent_and_clear(p, path, &name, e);
	if (parent < 0)
		return -1;
	return symlinkat(target, parent, name) < 0 ? err_sys(e, "%.200s", path) : 0;
}

int extract_hardlink_copy(struct extraction *p, const char *path, const char *from, struct err *e)
{
	const char *name   = "";
	scoped_fd   parent = *from ? tree_open_parent(p->root, from, &name) : -1, in = -1, out = -1;
	char        target[PATH_MAX];
	struct stat st;

	if (parent < 0 || fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)))
		return err_set(e, ERR_BAD_SPEC, "%.150s: another name of \"%.150s\", which is no file of the tree",
			       path, from);
	if (strcmp(path, from) == 0)
		return 0;
	if (S_ISLNK(st.st_mode)) /* a hard link to a symbolic link becomes another symbolic link */
		return tree_read_link(parent, name, target) < 0 ? err_sys(e, "%.200s", path)
								: extract_link(p, path, target, e);
	in = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (in < 0)
		return err_sys(e, "%.200s", from);
	out = extract_file(p, path, (uint64_t)st.st_size, st.st_mode, e);
	if (out < 0)
		return -1;
	return tree_copy_bytes(in, out, UINT64_MAX) < 0 ? err_sys(e, "%.200s", path) : 0;
}

/* --- whiteouts --- */

/* Opens a directory without following links; *ret is -1 if there is none. */
static int open_dir_without_links(const struct extraction *p, const char *path, int *ret, struct err *e)
{
	*ret = tree_open_entry(p->root, &(struct tree_entry){ .path = (char *)path }, O_RDONLY | O_DIRECTORY);
	if (*ret >= 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	if (errno == ELOOP)
		return err_set(e, ERR_BAD_SPEC, "%.200s: a whiteout behind a link", path);
	return err_sys(e, "%.200s", path);
}

int extract_whiteout_name(const struct extraction *p, const char *path, struct err *e)
{
	const char *name = strrchr(path, '/') + 1;
	scoped_fd   dir  = -1;
	char        parent[PATH_MAX];

	snprintf(parent, sizeof parent, "%.*s", (int)(name - 1 - path), path);
	if (open_dir_without_links(p, parent, &dir, e) < 0)
		return -1;
	return dir < 0 ? 0 : tree_remove(dir, name, e);
}

static int remove_dir_entry(void *context, int dir, const char *name, struct err *e)
{
	(void)context;
	return tree_remove(dir, name, e);
}

int extract_whiteout_dir(const struct extraction *p, const char *path, struct err *e)
{
	int dir;

	if (open_dir_without_links(p, path, &dir, e) < 0)
		return -1;
	return dir < 0 ? 0 : tree_each_in_dir(dir, path, remove_dir_entry, NULL, e);
}
