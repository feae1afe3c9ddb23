#define _GNU_SOURCE
#include "cg_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_OF_ONE = 3 }; /* a directory with one subdirectory: its name, its ".", and the ".." of the other */

/* Mostly there are none, and finding that out costs one system call. */
static bool has_others(int base)
{
	struct stat st;

	return fstat(base, &st) == 0 && st.st_nlink > LINKS_OF_ONE;
}

/* Clears one leftover. The caller holds its slot meanwhile, so that no other process takes it. */
typedef void clear_fn(const void *context, uint32_t number);

struct sweep {
	const struct slot *own; /* other slots are locked through its descriptor, and its own leaf is skipped; NULL: all are cleared */
	clear_fn          *clear;
	const void        *context;
};

static void clear_if_free(const struct sweep *s, uint32_t number)
{
	if (s->own && !slot_borrow(s->own, number))
		return;
	s->clear(s->context, number);
	if (s->own)
		slot_give_back(s->own, number);
}

static void sweep_base(int base, const struct sweep *s)
{
	int            fd  = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned       number;

	while (dir && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "cell-%u", &number) == 1 && !(s->own && number == s->own->number))
			clear_if_free(s, number);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

static void clear_anywhere(const void *runtime_dir, uint32_t number)
{
	cg_clear(runtime_dir, number);
}

void cg_sweep(const struct cg *g, const struct slot *own, const char *runtime_dir)
{
	const struct sweep s = { own, clear_anywhere, runtime_dir };

	for (size_t i = 0; i < g->n; i++)
		if (has_others(g->leaf[i].base_fd))
			sweep_base(g->leaf[i].base_fd, &s);
}

static void clear_below(const void *parent, uint32_t number)
{
	cg_clear_in(parent, number);
}

void cg_parent_sweep(const struct cg_parent *parent, const struct slot *own)
{
	const struct sweep s = { own, clear_below, parent };

	for (size_t i = 0; i < parent->n; i++)
		sweep_base(parent->base[i].base_fd, &s);
}
