#define _GNU_SOURCE
#include "prune.h"

#include "cell_path.h"
#include "fd.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <unistd.h>

static int prune_matching(int root, const struct tree *t, const char *pattern, bool *matched, struct err *e)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct tree_entry *entry = &t->entry[i];

		if (fnmatch(pattern, entry->path, FNM_PATHNAME | FNM_NOESCAPE) != 0)
			continue;
		*matched = true;
		/* an earlier row may have removed it, or a directory above it */
		if (tree_remove_path(root, entry->path, e) < 0)
			return err_wrap(e, "prune %s", entry->path);
	}
	return 0;
}

static bool is_dangling_link(int root, const struct tree_entry *entry)
{
	scoped_fd fd = entry->type == TREE_LINK ? tree_open(root, entry->path, O_PATH) : -1;

	return entry->type == TREE_LINK && fd < 0 && errno == ENOENT && !cell_path_is_link_target(entry);
}

/* Repeats until nothing changes, because a link may lead to another link that is removed. */
static int prune_dangling_links(int root, struct err *e)
{
	for (bool again = true; again;) {
		scoped_tree t = { 0 };

		again = false;
		if (tree_scan(root, &t, e) < 0)
			return -1;
		for (size_t i = 0; i < t.n; i++) {
			if (!is_dangling_link(root, &t.entry[i]))
				continue;
			again = true;
			if (tree_remove_path(root, t.entry[i].path, e) < 0)
				return err_wrap(e, "prune %s", t.entry[i].path);
		}
	}
	return 0;
}

int prune_apply(int root, const json_t *rows, void (*print_unmatched)(const char *row), struct err *e)
{
	scoped_tree       t = { 0 };
	struct recipe_row row;
	size_t            i;

	if (tree_scan(root, &t, e) < 0)
		return -1;
	recipe_foreach(rows, row, i) {
		bool matched = false;

		if (prune_matching(root, &t, row.key, &matched, e) < 0)
			return -1;
		if (!matched)
			print_unmatched(row.key);
	}
	return prune_dangling_links(root, e);
}
