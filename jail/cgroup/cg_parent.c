/* cg_parent.c - the groups above the leaves: found, made, lent, removed. Supervisors use none of it */
#define _GNU_SOURCE
#include "cg.h"

#include "fd.h"
#include "cg_dir.h"
#include "cg_trees.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

void cg_parent_open(struct cg_parent *ret, const char *cache_dir)
{
	struct cg_trees trees;

	*ret = (struct cg_parent){ 0 };
	cg_trees_find(&trees, cache_dir);
	for (size_t i = 0; i < trees.n; i++) {
		struct cg_leaf *base = &ret->base[ret->n];

		*base = (struct cg_leaf){ .base_fd = -1, .fd = -1, .join_fd = -1, .v2 = trees.tree[i].v2 };
		if (cg_trees_open_below(&trees, i, "brig", base) == 0) {
			cg_limit_parent_sockets(base);
			ret->n++;
		} else if (errno == EBUSY)
			snprintf(ret->why, sizeof ret->why,
				 "our control group is delegated, but holds other processes");
	}
}

void cg_parent_keep_open(struct cg_parent *parent)
{
	for (size_t i = 0; i < parent->n; i++) {
		parent->base[i].borrowed = false;
		parent->base[i].kept     = true;
	}
}

void cg_parent_close(struct cg_parent *parent)
{
	for (size_t i = 0; i < parent->n; i++)
		fd_closep(&parent->base[i].base_fd);
	parent->n = 0;
}

void cg_parent_remove(struct cg_parent *parent)
{
	for (size_t i = 0; i < parent->n; i++)
		cg_dir_remove_brig_group(parent->base[i].base_fd, parent->base[i].v2);
	cg_parent_close(parent);
}

/* Leaves alone what is right already: a change would make the descriptor of cg_parent_watch() readable. */
static int set_file_group_and_mode(int dir, const char *name, mode_t mode, unsigned gid, struct err *e)
{
	struct stat st;

	if (fstatat(dir, name, &st, 0) == 0 && st.st_gid == gid && (st.st_mode & 07777) == mode)
		return 0;
	if (fchownat(dir, name, (uid_t)-1, gid, 0) < 0 || fchmodat(dir, name, mode, 0) < 0)
		return err_sys(e, "control groups: %s for gid %u", name, gid);
	return 0;
}

int cg_parent_lend_to_gid(const struct cg_parent *parent, unsigned gid, struct err *e)
{
	for (size_t i = 0; i < parent->n; i++) {
		int base = parent->base[i].base_fd;

		if (set_file_group_and_mode(base, ".", 0750, gid, e) < 0 ||
		    (parent->base[i].v2 && set_file_group_and_mode(base, "../cgroup.procs", 0664, gid, e) < 0))
			return -1;
	}
	return 0;
}

int cg_parent_watch(const struct cg_parent *parent)
{
	scoped_fd watch = -1;

	for (size_t i = 0; i < parent->n; i++) {
		char path[64];

		if (!parent->base[i].v2)
			continue;
		snprintf(path, sizeof path, "/proc/self/fd/%d/../cgroup.procs", parent->base[i].base_fd);
		watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
		if (watch < 0 || inotify_add_watch(watch, path, IN_ATTRIB) < 0)
			return -1;
		break;
	}
	return fd_take(&watch);
}

/*
 * Tries again when another launcher has just removed the empty base. A launcher removes one in each hierarchy, and
 * several may end at the same moment: two tries were not enough (1 of 500 runs failed, with four at a time).
 */
enum cg_answer cg_make_for_slot(struct cg *ret, const char *cache_dir, uint32_t slot, struct err *e)
{
	enum { TRIES = 20 };
	enum cg_answer answer = CG_FAILED;

	for (int n = 0; n < TRIES; n++) {
		struct cg_parent parent;

		cg_parent_open(&parent, cache_dir);
		answer = cg_make_in_parent(ret, &parent, slot, e);
		cg_parent_close(&parent);
		if (answer != CG_FAILED || e->errnum != ENOENT)
			break;
	}
	return answer;
}

void cg_clear_leftover_of_slot(const char *cache_dir, uint32_t slot)
{
	struct cg_parent parent;

	cg_parent_open(&parent, cache_dir);
	cg_clear_leftover_in(&parent, slot);
	for (size_t i = 0; i < parent.n; i++)
		if (parent.base[i].borrowed)
			cg_dir_remove_brig_group(parent.base[i].base_fd, parent.base[i].v2);
	cg_parent_close(&parent);
}
