/*
 * stream_end.h - an inherited standard stream, read and written without blocking.
 *
 * O_NONBLOCK must not be set on it: the flag belongs to the open file description, which the shell, the client or another
 * server may share. So a pipe or a terminal is opened again, which makes a description of its own; a socket gets MSG_DONTWAIT
 * with each call; any other file is polled before each call.
 */
#pragma once
#include "err.h"

#include <sys/types.h>

struct stream_end {
	int  fd;        /* owned, close-on-exec */
	bool is_socket;
	bool is_ours;   /* fd has an open file description of its own, with O_NONBLOCK set */
};

/* Takes fd over, which was inherited. */
void stream_end_open(struct stream_end *ret, int fd, bool writes);
void stream_end_close(struct stream_end *s);

/* As read() and write(), but -1 with EAGAIN instead of waiting; a write may be short. */
ssize_t stream_end_read(struct stream_end *s, void *bytes, size_t len);
ssize_t stream_end_write(struct stream_end *s, const void *bytes, size_t len);
