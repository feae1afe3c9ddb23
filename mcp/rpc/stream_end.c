#define _GNU_SOURCE
#include "stream_end.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

void stream_end_open(struct stream_end *ret, int fd, bool writes)
{
	struct stat st = { 0 };
	char        path[40];
	int         again;

	*ret = (struct stream_end){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return;
	ret->is_socket = S_ISSOCK(st.st_mode);
	if (!S_ISFIFO(st.st_mode) && !isatty(fd))
		return;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	again = open(path, (writes ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again < 0) /* it belongs to another user, or its other end is closed */
		return;
	ret->is_ours = dup3(again, fd, O_CLOEXEC) == fd; /* under the number that was chosen for it */
	close(again);
}

void stream_end_close(struct stream_end *s)
{
	fd_closep(&s->fd);
}

static bool fd_is_ready(int fd, short events)
{
	struct pollfd on = { .fd = fd, .events = events };

	return poll(&on, 1, 0) != 0; /* also on an error, which the call itself then reports */
}

static ssize_t fail_with_eagain(void)
{
	errno = EAGAIN;
	return -1;
}

ssize_t stream_end_read(struct stream_end *s, void *bytes, size_t len)
{
	if (s->is_socket)
		return recv(s->fd, bytes, len, MSG_DONTWAIT);
	if (!s->is_ours && !fd_is_ready(s->fd, POLLIN))
		return fail_with_eagain();
	return read(s->fd, bytes, len);
}

/* A pipe that can be written to has room for PIPE_BUF bytes; for more, write() would wait. */
ssize_t stream_end_write(struct stream_end *s, const void *bytes, size_t len)
{
	if (s->is_socket)
		return send(s->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (s->is_ours)
		return write(s->fd, bytes, len);
	if (!fd_is_ready(s->fd, POLLOUT))
		return fail_with_eagain();
	return write(s->fd, bytes, len < PIPE_BUF ? len : PIPE_BUF);
}
