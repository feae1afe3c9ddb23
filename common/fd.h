/* fd.h - file descriptors that are closed when their variable goes out of scope */
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

/* Passes ownership from the variable to the caller. */
static inline int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Closes all descriptors above 2 except those in keep, which it sorts in place. 0 or -1 with errno. After clone(): calls only close_range(). */
must_use int fd_close_all_but(int *keep, size_t n);
