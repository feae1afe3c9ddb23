#define _GNU_SOURCE
#include "usr_merge.h"

#include "fd.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const tops[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };

static bool path_has_type_itself(int root, const char *path, mode_t type)
{
	const char *name   = NULL;
	scoped_fd   parent = tree_open_parent(root, path, &name);
	struct stat st;

	return parent >= 0 && fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

static bool is_same_inode(int root, const char *a, const char *b)
{
	struct stat x, y;
	scoped_fd   first = tree_open(root, a, O_PATH), second = tree_open(root, b, O_PATH);

	return first >= 0 && second >= 0 && fstat(first, &x) == 0 && fstat(second, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* --- links --- */

/* "/lib/x86/a" and "../../etc/b" -> "/etc/b" in whole, without following links. False when the target stays below /lib.
 */
static bool link_leaves_top(const char *path, const char *target, char whole[PATH_MAX])
{
	size_t len  = (size_t)(strrchr(path, '/') - path), top = strcspn(path + 1, "/") + 1;
	bool   left = false;

	if (target[0] == '/' || len + 1 >= PATH_MAX)
		return false;
	memcpy(whole, path, len);
	for (const char *at = target; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && at[0] == '.' && at[1] == '.') {
			while (len && whole[--len] != '/')
				;
			left |= len < top;
		} else if (n && !(n == 1 && at[0] == '.')) {
			if (len + 2 + n >= PATH_MAX)
				return false;
			whole[len++] = '/';
			memcpy(whole + len, at, n);
			len += n;
		}
		at += n + strspn(at + n, "/");
	}
	if (len == 0)
		whole[len++] = '/';
	whole[len] = 0;
	return left;
}

/* --- moving --- */

static int move_below_usr(int root, const struct tree_entry *entry, const char *to, struct err *e)
{
	const char *old = NULL, *new = NULL;
	char        whole[PATH_MAX];
	scoped_fd   from = -1, into = -1;

	if (entry->type == TREE_LINK && link_leaves_top(entry->path, entry->target, whole))
		return tree_link(root, to, whole, e);
	from = tree_open_parent(root, entry->path, &old);
	into = from < 0 ? -1 : tree_open_parent(root, to, &new);
	return into < 0 || renameat(from, old, into, new) < 0 ? err_sys(e, "move %.200s below /usr", entry->path) : 0;
}

static int merge_entry(int root, const struct tree_entry *entry, struct err *e)
{
	char to[PATH_MAX + 8];

	snprintf(to, sizeof to, "/usr%s", entry->path);
	if (entry->type == TREE_DIR)
		return tree_make_dir(root, to, e);
	if (path_has_type_itself(root, to, S_IFLNK) && entry->type == TREE_FILE && is_same_inode(root, to, entry->path))
		return move_below_usr(root, entry, to, e); /* /usr/bin/sh -> /bin/sh */
	if (path_has_type_itself(root, to, S_IFLNK) || path_has_type_itself(root, to, S_IFREG) ||
	    path_has_type_itself(root, to, S_IFDIR))
		return 0;
	return move_below_usr(root, entry, to, e);
}

static int merge_top(int root, const struct tree *t, const char *top, struct err *e)
{
	size_t len = strlen(top);
	char   to[16], target[16];

	if (!path_has_type_itself(root, top, S_IFDIR))
		return 0;
	snprintf(to, sizeof to, "/usr%s", top);
	snprintf(target, sizeof target, "usr%s", top);
	/* merged the other way round: /usr/bin -> /bin */
	if (path_has_type_itself(root, to, S_IFLNK) && is_same_inode(root, to, top) &&
	    tree_remove_path(root, to, e) < 0)
		return -1;
	if (tree_make_dir(root, to, e) < 0)
		return -1;
	for (size_t i = 0; i < t->n; i++)
		if (strncmp(t->entry[i].path, top, len) == 0 && t->entry[i].path[len] == '/' &&
		    merge_entry(root, &t->entry[i], e) < 0)
			return -1;
	return tree_remove(root, top + 1, e) < 0 ? -1 : tree_link(root, top, target, e);
}

static int check_usr_exists(int root, const struct tree *t, struct err *e)
{
	const char *first = t->n ? t->entry[0].path : "";

	if (path_has_type_itself(root, "/usr", S_IFDIR))
		return 0;
	if (path_has_type_itself(root, "/usr", S_IFLNK))
		return err_set(e, ERR_BAD_SPEC, "/usr is a link; a cell executes what lies below the directory /usr");
	return err_set(e, ERR_BAD_SPEC,
		       "no tree of a system: it has neither /usr nor /bin, and a cell executes nothing else%s%.100s",
		       *first ? "; it begins with " : "", first);
}

int usr_merge_apply(int root, struct err *e)
{
	scoped_tree t = { 0 };

	if (tree_scan(root, &t, e) < 0)
		return -1;
	if (path_has_type_itself(root, "/usr", S_IFLNK))
		return check_usr_exists(root, &t, e);
	for (size_t i = 0; i < ARRAY_LEN(tops); i++)
		if (merge_top(root, &t, tops[i], e) < 0)
			return -1;
	return check_usr_exists(root, &t, e);
}
