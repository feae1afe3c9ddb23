#define _GNU_SOURCE
#include "packet.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int pair[2];

static bool is_same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* Around packet_send(), which takes no more than it can: what a stranger would send. */
static void send_many(const char *text, const int *fds, size_t n)
{
	char            room[CMSG_SPACE(8 * sizeof(int))] = { 0 };
	struct iovec    io  = { (void *)text, strlen(text) };
	struct msghdr   msg = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c   = CMSG_FIRSTHDR(&msg);

	*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int)) };
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	if (sendmsg(pair[0], &msg, MSG_NOSIGNAL) < 0)
		perror("sendmsg");
}

/* A connection whose other end takes nothing, and whose close waits for that. */
static int lingering(void)
{
	static const char         text[1 << 16];
	static const struct linger minute = { .l_onoff = 1, .l_linger = 60 };
	struct sockaddr_in        at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t                 len = sizeof at;
	int                       server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (bind(server, (struct sockaddr *)&at, len) < 0 || listen(server, 1) < 0 || getsockname(server, (struct sockaddr *)&at, &len) < 0 ||
	    connect(client, (struct sockaddr *)&at, len) < 0 || setsockopt(client, SOL_SOCKET, SO_LINGER, &minute, sizeof minute) < 0)
		abort();
	while (send(client, text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) /* as much as both ends take */
		;
	return client;
}

static int lowest_free(void)
{
	int fd = dup(pair[0]);

	close(fd);
	return fd;
}

int main(void)
{
	int    null = open("/dev/null", O_RDONLY | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	int    many[] = { null, zero, null, zero, null }, got[3], before;
	char   text[8];
	size_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return EXIT_FAILURE;
	tap_ok(packet_send(pair[0], "abc", 3, NULL, 0) == 0, "a struct is sent alone");
	tap_ok(packet_receive(pair[1], text, sizeof text, got, 3, &n) == 3 && n == 0, "it arrives whole, with no descriptor");
	tap_ok(packet_send(pair[0], "abc", 3, many, 2) == 0, "two descriptors go with a struct");
	tap_ok(packet_receive(pair[1], text, sizeof text, got, 3, &n) == 3 && n == 2, "two arrive");
	tap_ok(is_same_file(got[0], null) && is_same_file(got[1], zero), "they are those that were sent, in order");
	tap_ok(fcntl(got[0], F_GETFD) == FD_CLOEXEC, "they close on exec");
	close(got[0]);
	close(got[1]);
	before = lowest_free();
	send_many("x", many, 5);
	tap_ok(packet_receive(pair[1], text, sizeof text, got, 3, &n) < 0 && errno == EMSGSIZE && n == 0, "more than three descriptors are an error");
	tap_ok(lowest_free() == before, "and none of them stays open");
	send_many("", many, 2);
	tap_ok(packet_receive(pair[1], text, sizeof text, got, 3, &n) == 0 && n == 0, "descriptors without a byte are the end");
	tap_ok(lowest_free() == before, "and none of them stays open");
	close(pair[0]);
	tap_ok(packet_receive(pair[1], text, sizeof text, got, 3, &n) == 0, "the other end's death is the end");
	tap_ok(packet_send(pair[1], "abc", 3, NULL, 0) == -EPIPE, "sending then is an errno, not a signal");
	close(pair[1]);

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return EXIT_FAILURE;
	packet_send(pair[0], "unread", 6, NULL, 0);
	packet_send(pair[1], "last", 4, NULL, 0);
	close(pair[1]);
	tap_ok(packet_receive(pair[0], text, sizeof text, got, 3, &n) == 4, "the last word arrives though the other end died with ours unread");
	tap_ok(packet_receive(pair[0], text, sizeof text, got, 3, &n) == 0, "and then comes the end");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return EXIT_FAILURE;
	while (packet_is_writable(pair[0]) && packet_send_nowait(pair[0], "abc", 3, NULL, 0) == 0)
		;
	tap_ok(!packet_is_writable(pair[0]) && packet_send_nowait(pair[0], "abc", 3, NULL, 0) == 0, "a socket whose packets are not read has no room, before a packet is refused");
	while (packet_is_readable(pair[1]))
		(void)!packet_receive(pair[1], text, sizeof text, got, 3, &n);
	tap_ok(packet_is_writable(pair[0]), "and has room again when it was read");
	got[0] = lingering();
	got[1] = dup(pair[0]);
	alarm(20);
	packet_close_fds(got, 2);
	alarm(0);
	tap_ok(got[0] == -1 && got[1] == -1, "a socket that a stranger sent is closed without waiting for its other end");
	return tap_done();
}
