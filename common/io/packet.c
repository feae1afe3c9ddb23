#define _GNU_SOURCE
#include "packet.h"

#include "fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

union control {
	struct cmsghdr head; /* for its alignment */
	char           room[CMSG_SPACE(PACKET_FDS_MAX * sizeof(int))];
};

static int send_with_fds(int sock, const void *bytes, size_t len, const int *fds, size_t n, int flags)
{
	union control control;
	struct iovec  io  = { (void *)bytes, len };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1 };
	ssize_t       sent;

	if (n > PACKET_FDS_MAX)
		return -EINVAL;
	memset(&control, 0, sizeof control);
	if (n) {
		msg.msg_control    = control.room;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *c  = CMSG_FIRSTHDR(&msg);
		c->cmsg_level      = SOL_SOCKET;
		c->cmsg_type       = SCM_RIGHTS;
		c->cmsg_len        = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	do
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return sent == (ssize_t)len ? 0 : -EMSGSIZE;
}

int packet_send(int sock, const void *bytes, size_t len, const int *fds, size_t n)
{
	return send_with_fds(sock, bytes, len, fds, n, 0);
}

int packet_send_nowait(int sock, const void *bytes, size_t len, const int *fds, size_t n)
{
	return send_with_fds(sock, bytes, len, fds, n, MSG_DONTWAIT);
}

/* recvmsg() must be given CMSG_LEN bytes, not CMSG_SPACE: with its padding, the latter has room for one descriptor more. */
static size_t copy_received_fds(struct msghdr *msg, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t          n;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return n;
}

/* Whether one of the events, POLLIN or POLLOUT, is there now. */
static bool socket_is_ready(int sock, short events)
{
	struct pollfd p = { .fd = sock, .events = events };

	return sock >= 0 && poll(&p, 1, 0) == 1;
}

bool packet_is_readable(int sock)
{
	return socket_is_ready(sock, POLLIN);
}

bool packet_is_writable(int sock)
{
	return socket_is_ready(sock, POLLOUT);
}

void packet_close_fds(int *fds, size_t n)
{
	static const struct linger none = { 0 };

	for (size_t i = 0; i < n; i++) {
		(void)setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &none, sizeof none); /* most are no sockets: ENOTSOCK */
		fd_closep(&fds[i]);
	}
}

ssize_t packet_receive(int sock, void *bytes, size_t len, int *fds, size_t max, size_t *n)
{
	union control control;
	struct iovec  io  = { bytes, len };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = CMSG_LEN(max * sizeof(int)) };
	ssize_t       got;

	/* after a close of the other side with unread bytes, recvmsg() fails with ECONNRESET once; then comes what it had sent */
	do
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (got < 0 && (errno == EINTR || errno == ECONNRESET));
	*n = got < 0 ? 0 : copy_received_fds(&msg, fds);
	if (got >= 0 && msg.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) {
		packet_close_fds(fds, *n);
		*n    = 0;
		errno = EMSGSIZE;
		return -1;
	}
	if (got == 0) { /* the end, or a packet without bytes, with which descriptors can come */
		packet_close_fds(fds, *n);
		*n = 0;
	}
	return got;
}

void packet_close_socket(int *sock)
{
	int    fds[PACKET_FDS_MAX];
	char   bytes[4096];
	size_t n;

	if (*sock >= 0)
		(void)shutdown(*sock, SHUT_RDWR); /* else the other end could fill it again */
	while (packet_is_readable(*sock)) {
		ssize_t got = packet_receive(*sock, bytes, sizeof bytes, fds, PACKET_FDS_MAX, &n);

		if (got == 0 || (got < 0 && errno != EMSGSIZE))
			break;
		packet_close_fds(fds, n);
	}
	fd_closep(sock);
}

bool packet_is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}
