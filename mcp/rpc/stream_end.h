/*
 * stream_end.h - a standard stream that we were handed: read or written without waiting, whatever it is.
 *
 * Its flags are not ours: O_NONBLOCK belongs to the open file, which the shell,
 * the client or another server may hold as well. So a pipe is opened once more
 * for us alone, a socket is asked each time, and of what is left the kernel
 * says how much can be written at once.
 */
#pragma once
#include "err.h"

#include <sys/types.h>

struct stream_end {
	int  fd;        /* owned, close-on-exec */
	bool is_socket;
	bool is_ours;   /* the open file is, and O_NONBLOCK is set on it */
};

/* Takes fd over, which was inherited. */
void stream_end_open(struct stream_end *ret, int fd, bool writes);
void stream_end_close(struct stream_end *s);

/* As read() and write(), but -1 with EAGAIN instead of waiting; a write may be short. */
ssize_t stream_end_read(struct stream_end *s, void *bytes, size_t len);
ssize_t stream_end_write(struct stream_end *s, const void *bytes, size_t len);
