/*
 * net_pool.h - network namespaces that are as they were made, for the next cells of a profile
 *
 * They are owned by the namespace that the spawner is root of, so nobody in a cell has power over them. A launcher
 * takes one along when it is forked, or makes one, and sends it back when its cell has gone without a trace. From one
 * that is killed nothing comes, and the kernel throws its network away.
 */
#pragma once
#include "err.h"
#include "net.h"

#include <linux/filter.h>

enum { NET_POOL_MAX = 8 };

struct net_pool {
	int        home_fd;   /* -1: none are kept, every cell has a new one */
	int        back[2];   /* [1]: for launchers */
	bool       is_needless; /* the filter lets no socket of a network be made */
	struct net net[NET_POOL_MAX];
	size_t     n;
};
#define NET_POOL_NONE ((struct net_pool){ .home_fd = -1, .back = { -1, -1 } })

/* The caller moves into a network of its own. The filter is changed, so that it tells what a launcher has to know. */
must_use int net_pool_open(struct net_pool *p, struct sock_fprog *filter, struct err *e);

/* In the spawner: what a launcher is to take along; net_pool_taken() when there is one. */
struct net_place net_pool_place(const struct net_pool *p);
void             net_pool_taken(struct net_pool *p);
/* In the launcher: what others will take is not its own. */
void             net_pool_forget(const struct net_pool *p);

/* What to poll for reading, and what to do then. */
int  net_pool_fd(const struct net_pool *p);
void net_pool_hear(struct net_pool *p);
