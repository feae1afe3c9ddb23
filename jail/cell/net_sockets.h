/*
 * net_sockets.h - the sockets at which a cell listens for brig-proxy (net_listeners.h)
 *
 * Made in the cell's network by the process that builds the cell, given away
 * once. No process of the cell ever has one.
 */
#pragma once
#include "err.h"
#include "net_listeners.h"

struct net_sockets {
	struct net_listeners what;
	uint32_t             n; /* descriptors, in the order of net_listeners.h; 0: there are none, or not any more */
	int                  fd[NET_LISTEN_MAX];
};

/* The caller is in the network, which has its route, and may use ports below 1024. Sockets do not block. */
must_use int net_sockets_open(const struct net_listeners *what, struct net_sockets *ret, struct err *e);
/* Over a SOCK_SEQPACKET socket, if it takes them at once. Closed here either way: what no other process has is refused by the kernel. */
void         net_sockets_give(struct net_sockets *s, int sock);
void         net_sockets_close(struct net_sockets *s);
