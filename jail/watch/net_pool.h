/*
 * net_pool.h - network namespaces that are as they were made, for the next cells of a profile
 *
 * They are owned by the namespace that the supervisor is root of, so nothing in a cell has power over them. A cell takes
 * one, or a new one is made; when the cell has gone and left no trace in it, it comes back. brig-proxy closes its sockets
 * in it only when it hears of that end: until then the network rests here.
 */
#pragma once
#include "err.h"
#include "net.h"

#include <linux/filter.h>

enum { NET_POOL_MAX = 8 };

struct kept_net {
	struct net net;
	bool       rests; /* it had a socket when it came, and is looked at again when it is taken */
};

struct net_pool {
	int        host_fd;   /* the supervisor's own, in which there is no cell; -1: a launcher's, which builds one cell and does not go back */
	size_t     max;       /* so many are kept; 0: every cell has a new one */
	bool       is_needless; /* the filter lets no socket of a network be made */
	struct kept_net kept[NET_POOL_MAX]; /* oldest first */
	size_t          n;
};

/* The caller moves into a network of its own. keeps: the filter is changed, so that it tells what a supervisor has to know. */
must_use int net_pool_open(struct net_pool *p, bool keeps, struct sock_fprog *filter, struct err *e);

/* The network in it is the cell's from then on. */
struct net_place net_pool_take(struct net_pool *p);
/* One of which no process had a socket (cell_left_net_alone()). Where there is no room, it or one that rests is closed. */
void             net_pool_give(struct net_pool *p, struct net *one);
