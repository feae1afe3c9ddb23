/*
 * net_pool.h - network namespaces that are as they were made, for the next cells of a profile
 *
 * They are owned by P, so nothing in a cell has power over them. A cell takes a network, or a new one is made; the
 * network comes back when the cell is gone and has left no trace in it. brig-proxy closes its sockets in a network
 * only when it learns of the end of the run: until then the network rests here.
 */
#pragma once
#include "err.h"
#include "net.h"

#include <linux/filter.h>

enum { NET_POOL_MAX = 8 };

struct kept_net {
	struct net net;
	bool       rests; /* it still had a socket when it came back, and is checked again before it is taken */
};

struct net_pool {
	int        host_fd;   /* the supervisor's own, without a cell; -1: a launcher does not go back */
	size_t     max;       /* so many are kept; 0: every cell has a new one */
	bool       is_needless; /* the filter refuses every network socket */
	struct kept_net kept[NET_POOL_MAX]; /* oldest first */
	size_t          n;
};

/* Moves the caller into its own network. keeps: networks are used again, and the filter gives notice of their sockets. */
must_use int net_pool_open(struct net_pool *p, bool keeps, struct sock_fprog *filter, struct err *e);

/* The cell owns the network in the result. */
struct net_place net_pool_take_net(struct net_pool *p);
/* Takes *one over, in which no process had a socket (cell_network_is_unused()). A full pool closes it or one that rests. */
void             net_pool_return_net(struct net_pool *p, struct net *one);
