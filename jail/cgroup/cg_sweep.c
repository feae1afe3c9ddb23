#define _GNU_SOURCE
#include "cg_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_OF_ONE = 3 }; /* a directory with one subdirectory: its name, its ".", and the ".." of the other */

/* Mostly there are none, and finding that out costs one system call. */
static bool has_other_leaves(int base)
{
	struct stat st;

	return fstat(base, &st) == 0 && st.st_nlink > LINKS_OF_ONE;
}

/*
 * Holds the slot of a leftover while it is cleared, so that no other process takes it. parent NULL: it is opened for a
 * leftover alone, because most neighbours live, and opening it costs many system calls.
 */
static void clear_leftover_leaves(int base, const struct cg_parent *parent, const struct slot *own,
				  const char *runtime_dir)
{
	int            fd  = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned       number;

	while (dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "cell-%u", &number) != 1 ||
		    (own && (number == own->number || !slot_try_lock_other(own, number))))
			continue;
		if (parent)
			cg_clear_leftover_in(parent, number);
		else
			cg_clear_leftover_of_slot(runtime_dir, number);
		if (own)
			slot_unlock_other(own, number);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void cg_parent_sweep_leftovers(const struct cg_parent *parent, const struct slot *own)
{
	for (size_t i = 0; i < parent->n; i++)
		clear_leftover_leaves(parent->base[i].base_fd, parent, own, NULL);
}

void cg_sweep_leftovers(const struct cg *g, const struct slot *own, const char *runtime_dir)
{
	for (size_t i = 0; i < g->n; i++)
		if (has_other_leaves(g->leaf[i].base_fd))
			clear_leftover_leaves(g->leaf[i].base_fd, NULL, own, runtime_dir);
}
