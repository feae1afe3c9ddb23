#define _GNU_SOURCE
#include "net.h"

#include "fd.h"
#include "file.h"
#include "net_listeners.h"

#include <arpa/inet.h>
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

enum { LOOPBACK = 1 }; /* its index, in every network */

/* Two requests are all that is needed: the core of libnl does them, its route library would only add start-up time. */
static int send_netlink_request(int type, int flags, void *message, size_t len, const char *what, struct err *e)
{
	scoped(socket_freep) struct nl_sock *sock = nl_socket_alloc();
	int                                  r;

	if (!sock)
		return err_set(e, ERR_LIMIT, "set-up step net-namespace: %s: out of memory", what);
	r = nl_connect(sock, NETLINK_ROUTE);
	if (r == 0)
		r = nl_send_simple(sock, type, NLM_F_REQUEST | NLM_F_ACK | flags, message, len);
	if (r >= 0)
		r = nl_wait_for_ack(sock);
	return r < 0 ? err_set(e, ERR_SETUP, "set-up step net-namespace: %s: %s", what, nl_geterror(r)) : 0;
}

/* The kernel takes every address of the route for its own (RTN_LOCAL), so a packet to one never leaves lo. */
int net_add_local_route(struct err *e)
{
	struct {
		struct rtmsg  route;
		struct rtattr to;
		uint32_t      address;
		struct rtattr by;
		uint32_t      device;
	} message = {
		.route   = { .rtm_family = AF_INET, .rtm_dst_len = NET_ROUTE_BITS, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL },
		.to      = { RTA_LENGTH(sizeof(uint32_t)), RTA_DST },
		.address = htonl(NET_ROUTE),
		.by      = { RTA_LENGTH(sizeof(uint32_t)), RTA_OIF },
		.device  = LOOPBACK,
	};

	return send_netlink_request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &message, sizeof message, "route " NET_ROUTE_TEXT, e);
}

/* True: this process may not write to /proc/sys, as in some containers. */
static bool is_proc_sys_denied(int errnum)
{
	return errnum == EROFS || errnum == EACCES || errnum == EPERM || errnum == ENOENT;
}

/*
 * All networks of the host share one limit of memory for TCP (net.ipv4.tcp_mem), so a connection gets no more here
 * than a loopback needs. Fast open would keep a key, and is of no use on a loopback. Where /proc/sys cannot be
 * written to, only the control groups limit a cell.
 */
static int limit_tcp_memory(struct err *e)
{
	static const char *const rows[][2] = {
		{ "tcp_rmem", "4096 65536 262144" },
		{ "tcp_wmem", "4096 16384 262144" },
		{ "tcp_fastopen", "0" },
	};
	scoped_fd dir = open("/proc/sys/net/ipv4", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return is_proc_sys_denied(errno) ? 0 : err_sys(e, "set-up step net-namespace: /proc/sys/net/ipv4");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (file_write_existing(dir, rows[i][0], rows[i][1]) < 0 && !is_proc_sys_denied(errno))
			return err_sys(e, "set-up step net-namespace: net.ipv4.%s", rows[i][0]);
	return 0;
}

int net_unshare_with_loopback(struct err *e)
{
	struct ifinfomsg lo = { .ifi_family = AF_UNSPEC, .ifi_index = LOOPBACK, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };

	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "set-up step net-namespace");
	return limit_tcp_memory(e) < 0 ? -1 : send_netlink_request(RTM_NEWLINK, 0, &lo, sizeof lo, "lo up", e);
}

/* --- a network that is kept --- */

int net_open_own_ns(void)
{
	return open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
}

int net_make_reusable(struct net *ret, struct err *e)
{
	if (net_unshare_with_loopback(e) < 0)
		return -1;
	ret->ns_fd      = net_open_own_ns();
	ret->sockets_fd = open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);
	ret->traffic_fd = open("/proc/self/net/dev", O_RDONLY | O_CLOEXEC);
	if (ret->ns_fd >= 0 && ret->sockets_fd >= 0 && ret->traffic_fd >= 0)
		return 0;
	err_sys(e, "set-up step net-namespace: /proc/self/net");
	net_close(ret);
	return -1;
}

int net_enter_ns(int ns_fd, struct err *e)
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

/* The kernel generates the text anew whenever a file is read from its beginning. */
static bool pread_proc_text(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* The kernel counts each socket that was made for a process, of any family, until the socket's memory is freed. */
static bool has_no_sockets(int fd)
{
	static const char none[] = "sockets: used 0\n";
	char              text[1024];

	return pread_proc_text(fd, text, sizeof text) && strncmp(text, none, sizeof none - 1) == 0;
}

/* "    lo:  0  0 ...": all sixteen figures are 0, and no device follows. */
static bool has_no_traffic(int fd)
{
	char        text[1024];
	const char *lo = pread_proc_text(fd, text, sizeof text) ? strstr(text, "lo:") : NULL;
	const char *end = lo ? strchr(lo, '\n') : NULL;

	return end && end[1] == 0 && lo + 3 + strspn(lo + 3, " 0") == end;
}

bool net_is_unused(const struct net *n)
{
	return has_no_sockets(n->sockets_fd) && has_no_traffic(n->traffic_fd);
}
