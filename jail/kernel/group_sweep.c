#define _GNU_SOURCE
#include "group_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_OF_ONE = 3 }; /* of a directory that holds one other: "..", "." and that one's ".." */

/* The usual answer is no, and costs one call. */
static bool has_others(int base)
{
	struct stat st;

	return fstat(base, &st) == 0 && st.st_nlink > LINKS_OF_ONE;
}

static void clear_if_free(const struct slot *own, const char *runtime_dir, uint32_t number)
{
	if (!slot_borrow(own, number))
		return;
	group_clear(runtime_dir, number);
	slot_give_back(own, number);
}

static void sweep_base(int base, const struct slot *own, const char *runtime_dir)
{
	int            fd  = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR           *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned       number;

	while (dir && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "cell-%u", &number) == 1 && number != own->number)
			clear_if_free(own, runtime_dir, number);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void group_sweep(const struct group *g, const struct slot *own, const char *runtime_dir)
{
	for (size_t i = 0; i < g->n; i++)
		if (has_others(g->leaf[i].base_fd))
			sweep_base(g->leaf[i].base_fd, own, runtime_dir);
}
