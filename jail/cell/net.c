#define _GNU_SOURCE
#include "net.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static void socket_freep(struct nl_sock **sock)
{
	nl_socket_free(*sock);
}

/* The one request that is needed: the core of libnl does it, its route library would only add start-up time. */
static int raise_loopback(struct err *e)
{
	scoped(socket_freep) struct nl_sock *sock = nl_socket_alloc();
	struct ifinfomsg lo = { .ifi_family = AF_UNSPEC, .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	int r;

	if (!sock)
		return err_set(e, ERR_LIMIT, "lo: out of memory");
	r = nl_connect(sock, NETLINK_ROUTE);
	if (r == 0)
		r = nl_send_simple(sock, RTM_NEWLINK, NLM_F_REQUEST | NLM_F_ACK, &lo, sizeof lo);
	if (r >= 0)
		r = nl_wait_for_ack(sock);
	return r < 0 ? err_set(e, ERR_SETUP, "set-up step net-namespace: lo up: %s", nl_geterror(r)) : 0;
}

/* As in some containers. */
static bool is_closed_to_us(int errnum)
{
	return errnum == EROFS || errnum == EACCES || errnum == EPERM || errnum == ENOENT;
}

/*
 * All networks share what the kernel lets TCP hold (net.ipv4.tcp_mem), so one connection gets no more here than a
 * loopback needs. Fast open keeps a key, and has no use without a network. Where /proc/sys cannot be written to, the
 * control groups are what bounds a cell.
 */
static int bound_sockets(struct err *e)
{
	static const char *const rows[][2] = {
		{ "tcp_rmem", "4096 65536 262144" },
		{ "tcp_wmem", "4096 16384 262144" },
		{ "tcp_fastopen", "0" },
	};
	scoped_fd dir = open("/proc/sys/net/ipv4", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return is_closed_to_us(errno) ? 0 : err_sys(e, "set-up step net-namespace: /proc/sys/net/ipv4");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (file_put(dir, rows[i][0], rows[i][1]) < 0 && !is_closed_to_us(errno))
			return err_sys(e, "set-up step net-namespace: net.ipv4.%s", rows[i][0]);
	return 0;
}

int net_enter_empty(struct err *e)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "set-up step net-namespace");
	return bound_sockets(e) < 0 ? -1 : raise_loopback(e);
}

/* --- one that is kept --- */

int net_open_own(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int open_files(struct net *n, struct err *e)
{
	n->ns_fd      = net_open_own();
	n->sockets_fd = open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);
	n->traffic_fd = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC);
	if (n->ns_fd >= 0 && n->sockets_fd >= 0 && n->traffic_fd >= 0)
		return 0;
	err_sys(e, "set-up step net-namespace: /proc/self/net");
	net_close(n);
	return -1;
}

int net_make(struct net *ret, struct err *e)
{
	return net_enter_empty(e) < 0 ? -1 : open_files(ret, e);
}

int net_enter(int ns_fd, struct err *e)
{
	return setns(ns_fd, CLONE_NEWNET) < 0 ? err_sys(e, "set-up step net-namespace: setns") : 0;
}

void net_close(struct net *n)
{
	fd_closep(&n->ns_fd);
	fd_closep(&n->sockets_fd);
	fd_closep(&n->traffic_fd);
}

/* --- is it as it was made? --- */

/* The files are made anew whenever they are read from the beginning. */
static bool read_text(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Counted by the kernel when it makes a socket for a program, whatever the family, until its memory is freed. */
static bool has_no_socket(int fd)
{
	static const char none[] = "sockets: used 0\n";
	char              text[1024];

	return read_text(fd, text, sizeof text) && strncmp(text, none, sizeof none - 1) == 0;
}

/* "    lo:  0  0 ...": all sixteen figures, and no other device. */
static bool has_no_traffic(int fd)
{
	char        text[1024];
	const char *lo = read_text(fd, text, sizeof text) ? strstr(text, "lo:") : NULL;
	const char *end = lo ? strchr(lo, '\n') : NULL;

	return end && end[1] == 0 && lo + 3 + strspn(lo + 3, " 0") == end;
}

bool net_is_quiet(const struct net *n)
{
	return has_no_socket(n->sockets_fd) && has_no_traffic(n->traffic_fd);
}
