#define _GNU_SOURCE
#include "cell_path.h"

#include "fd.h"
#include "mount_plan.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Directories that are not mounted over, and must be there for Landlock: programs are executed below /usr, and files
 * written below /dev. */
static const char *const bare[] = { "/usr", "/dev" };

static void add_cell_path(struct cell_paths *list, const char *slash, const char *path, enum tree_type type)
{
	struct cell_path *p = &list->place[list->n++];

	snprintf(p->path, sizeof p->path, "%s%s", slash, path);
	p->type = type;
}

int cell_paths_list(struct cell_paths *ret, struct err *e)
{
	static const char *const layer[] = { MOUNT_LAYER };
	struct mount_plan        plan;

	_Static_assert(ARRAY_LEN(bare) + MOUNT_MAX <= ARRAY_LEN(ret->place), "room for every mount");
	if (mount_plan_build(&plan, &(struct mount_options){ .trust = true, .terminals = true, .shown = layer, .shown_len = 1 }, e) < 0)
		return -1;
	ret->n = 0;
	for (size_t i = 0; i < ARRAY_LEN(bare); i++)
		add_cell_path(ret, "", bare[i], TREE_DIR);
	for (size_t i = 0; i < plan.n; i++)
		if (plan.step[i].kind != MOUNT_ROOT)
			add_cell_path(ret, "/", plan.step[i].to, plan.step[i].kind == MOUNT_DEVICE ? TREE_FILE : TREE_DIR);
	return 0;
}

static int make_cell_path(int root, const struct cell_path *p, struct err *e)
{
	scoped_fd is = tree_open(root, p->path, O_PATH | O_NOFOLLOW);

	if (is >= 0)
		return 0;
	if (errno != ENOENT)
		return err_sys(e, "%s", p->path);
	return p->type == TREE_DIR ? tree_make_dir(root, p->path, e) : tree_write(root, p->path, "", 0, e);
}

static const char ptmx[] = "/dev/ptmx", to_ptmx[] = "pts/ptmx";

bool cell_path_is_link_target(const struct tree_entry *link)
{
	return begins_with(link->target, "/proc/") ||
	       (strcmp(link->path, ptmx) == 0 && strcmp(link->target, to_ptmx) == 0);
}

int cell_paths_make(int root, struct err *e)
{
	struct cell_paths list;

	if (cell_paths_list(&list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		if (make_cell_path(root, &list.place[i], e) < 0)
			return -1;
	/*
	 * Programs make a terminal with /dev/ptmx. The link has a target only in a session with terminals. It replaces
	 * an existing entry, because a cell has no device of that name.
	 */
	return tree_remove_path(root, ptmx, e) < 0 ? -1 : tree_link(root, ptmx, to_ptmx, e);
}

/* A tree made elsewhere may have anything there: a link, for example, would make every run fail. */
static int clear_cell_path(int root, const struct cell_path *p, struct err *e)
{
	const char *name   = NULL;
	scoped_fd   parent = tree_open_parent(root, p->path, &name);
	struct stat st;

	if (parent < 0) /* then the place is missing too */
		return errno == ENOENT ? 0 : err_sys(e, "%s", p->path);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (st.st_mode & S_IFMT) == (p->type == TREE_DIR ? S_IFDIR : S_IFREG))
		return 0;
	return tree_remove(parent, name, e);
}

int cell_paths_replace(int root, struct err *e)
{
	static const char *const links[][2] = {
		{ "/dev/fd", "/proc/self/fd" },
		{ "/dev/stdin", "/proc/self/fd/0" },
		{ "/dev/stdout", "/proc/self/fd/1" },
		{ "/dev/stderr", "/proc/self/fd/2" },
	};

	struct cell_paths list;

	if (cell_paths_list(&list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		if (clear_cell_path(root, &list.place[i], e) < 0)
			return -1;
	if (cell_paths_make(root, e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(links); i++)
		if (tree_remove_path(root, links[i][0], e) < 0 || tree_link(root, links[i][0], links[i][1], e) < 0)
			return -1;
	return 0;
}

bool cell_path_check(const struct cell_path *p, const struct tree *t, char why[CELL_PLACE_WORDS])
{
	static const char *const names[] = { [TREE_FILE]  = "a file",
					     [TREE_DIR]   = "a directory",
					     [TREE_LINK]  = "a link",
					     [TREE_OTHER] = "a special file" };
	const struct tree_entry *is   = tree_find(t, p->path);
	const char              *name = p->path + 1; /* relative, to be typed in the tree's root */
	const char              *make = p->type == TREE_DIR ? "mkdir -p" : "touch";

	if (is && is->type == p->type)
		return true;
	if (is)
		snprintf(why, CELL_PLACE_WORDS, "%s, and a cell needs %s there; in the tree, type: rm -r %s && %s %s",
			 names[is->type], names[p->type], name, make, name);
	else
		snprintf(why, CELL_PLACE_WORDS, "missing, and a cell needs %s there; in the tree, type: %s %s",
			 names[p->type], make, name);
	return false;
}
