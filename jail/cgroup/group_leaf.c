/* group_leaf.c - what all files of a group need of one leaf */
#include "group.h"

#include "fd.h"

#include <fcntl.h>
#include <unistd.h>

bool group_read_file(int dir, const char *name, char *buf, size_t len)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t   n  = fd < 0 ? -1 : read(fd, buf, len - 1);

	buf[n < 0 ? 0 : n] = 0;
	return n >= 0;
}

const struct group_leaf *group_leaf_with(const struct group *g, unsigned controller)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].controllers & controller)
			return &g->leaf[i];
	return NULL;
}
