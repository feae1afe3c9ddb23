/*
 * net_sockets.h - the sockets at which a cell listens for brig-proxy (net_listeners.h)
 *
 * The process that builds the cell makes them in the cell's network. It sends them
 * away once, when the program first sends something to one of them: most runs send
 * nothing, and then brig-proxy has nothing to do, and a private run starts none.
 * No process of the cell ever has one.
 */
#pragma once
#include "err.h"
#include "net_listeners.h"

struct net_sockets {
	struct net_listeners what;
	uint32_t             n; /* descriptors, in the order of net_listeners.h; 0: there are none, or not any more */
	int                  fd[NET_LISTEN_MAX];
	int                  used_fd; /* epoll, readable when one of them is; -1: there are none, or it failed */
	int                  to;      /* SOCK_SEQPACKET, over which they are sent; -1: not asked for yet, or closed */
};
#define NET_SOCKETS_NONE ((struct net_sockets){ .used_fd = -1, .to = -1 })

/* The caller is in the cell's network, which has its route, and may bind ports below 1024. The sockets do not block. */
must_use int net_sockets_open(const struct net_listeners *what, struct net_sockets *ret, struct err *e);
/* Takes over sock, for net_sockets_send(); sends now if used_fd is -1. If its other end is closed, they are closed. */
void         net_sockets_set_receiver(struct net_sockets *s, int sock);
/*
 * After net_sockets_set_receiver(); does not block. They are closed here: if not sent, the kernel refuses connections.
 */
void         net_sockets_send(struct net_sockets *s);
void         net_sockets_close(struct net_sockets *s);
