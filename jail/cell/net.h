/*
 * net.h - an empty network namespace with lo up.
 *
 * Half of the standard library's network modules need a loopback (m). The
 * process that builds the cell makes the namespace, which belongs to its user
 * namespace, so that no process of a cell has power over it. Making one costs more
 * than the rest of a cell, so one that is still like new may be used again.
 */
#pragma once
#include "err.h"

/* A namespace that is kept; sockstat and dev of its /proc/net. */
struct net {
	int ns_fd, sockets_fd, traffic_fd;
};
#define NET_NONE ((struct net){ -1, -1, -1 })

/* The network of a cell, and of the process that builds the cell. */
struct net_place {
	struct net net;     /* of the cell; NONE: a new one is made */
	int        host_fd; /* borrowed: the process's own, to go back to; -1: it stays in the cell's */
	bool       is_needless; /* the filter allows no network socket */
};
#define NET_PLACE_NONE ((struct net_place){ NET_NONE, -1, false })

/* The calling process moves into a new namespace for good. */
must_use int net_unshare_with_loopback(struct err *e);

/* The calling process is in the network from then on. net_make_reusable() makes one that can be kept. */
must_use int net_make_reusable(struct net *ret, struct err *e);
must_use int net_enter_ns(int ns_fd, struct err *e);
/* Adds the route of net_listeners.h to the caller's network, once. It leads to lo only. */
must_use int net_add_local_route(struct err *e);
/* The caller's network, or -1 with errno. The descriptor is the caller's. */
must_use int net_open_own_ns(void);
void         net_close(struct net *n);

/*
 * True: no socket of any family is left in it, and no packet was ever sent. If also every process of the cell is
 * gone, and none ever had a socket that is not local (filter_notice.h), the next program cannot tell the network from
 * a new one.
 */
must_use bool net_is_unused(const struct net *n);
