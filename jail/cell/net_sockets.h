/*
 * net_sockets.h - the sockets at which a cell listens for brig-proxy (net_listeners.h)
 *
 * Made in the cell's network by the process that builds the cell, and given away
 * once, when the program has sent something to one: most runs send nothing, and
 * those that could not cost brig-proxy a turn, or a private run a process. No
 * process of the cell ever has one.
 */
#pragma once
#include "err.h"
#include "net_listeners.h"

struct net_sockets {
	struct net_listeners what;
	uint32_t             n; /* descriptors, in the order of net_listeners.h; 0: there are none, or not any more */
	int                  fd[NET_LISTEN_MAX];
	int                  used_fd; /* can be read when one of them can be; -1: there are none, or the kernel has no room for such a descriptor */
	int                  to;      /* they are asked for: a SOCK_SEQPACKET socket; -1: not yet, or not any more */
};
#define NET_SOCKETS_NONE ((struct net_sockets){ .used_fd = -1, .to = -1 })

/* The caller is in the network, which has its route, and may use ports below 1024. Sockets do not block. */
must_use int net_sockets_open(const struct net_listeners *what, struct net_sockets *ret, struct err *e);
/* sock becomes ours. They are given over it, now or by net_sockets_give(); closed now if its other end is. */
void         net_sockets_ask(struct net_sockets *s, int sock);
/* After net_sockets_ask(), if the socket takes them at once. Closed here either way: what no other process has is refused by the kernel. */
void         net_sockets_give(struct net_sockets *s);
void         net_sockets_close(struct net_sockets *s);
