/*
 * net_pool.h - network namespaces that are as they were made, for the next cells of a profile
 *
 * They are owned by the namespace that the supervisor is root of, so nothing in a cell has power over them. A cell takes
 * one, or a new one is made; when the cell has gone and left no trace in it, it comes back.
 */
#pragma once
#include "err.h"
#include "net.h"

#include <linux/filter.h>

enum { NET_POOL_MAX = 8 };

struct net_pool {
	int        host_fd;   /* the supervisor's own, in which there is no cell */
	size_t     max;       /* so many are kept; 0: every cell has a new one */
	bool       is_needless; /* the filter lets no socket of a network be made */
	struct net net[NET_POOL_MAX];
	size_t     n;
};

/* The caller moves into a network of its own. keeps: the filter is changed, so that it tells what a supervisor has to know. */
must_use int net_pool_open(struct net_pool *p, bool keeps, struct sock_fprog *filter, struct err *e);

/* The network in it is the cell's from then on. */
struct net_place net_pool_take(struct net_pool *p);
/* One that is as it was made; it is closed when there is no room. */
void             net_pool_give(struct net_pool *p, struct net *one);
