/* fd.h - file descriptors have owners */
#pragma once
#include "defs.h"

#include <unistd.h>

static inline void fd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
#define scoped_fd scoped(fd_closep) int

/* Hand the descriptor on: the caller owns it now, the variable no longer does. */
static inline int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Closes every descriptor above 2 but these, which are sorted; those below 3 are passed over. 0 or -1 with errno. Only close_range() is called. */
must_use int fd_keep_only(int *keep, size_t n);
