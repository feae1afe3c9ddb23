#define _GNU_SOURCE
#include "net.h"

#include <net/if.h>
#include <netlink/errno.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sched.h>

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

int net_enter_empty(struct err *e)
{
	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, "set-up step net-namespace");
	return raise_loopback(e);
}
