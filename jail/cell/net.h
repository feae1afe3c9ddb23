/*
 * net.h - an empty network namespace with lo up.
 *
 * Half of the standard library's network modules need a loopback (m). The
 * namespace is made by the process that builds the cell and belongs to its user namespace, so that
 * nothing inside a cell has power over it. It costs more than everything else
 * of a cell: one that is as it was made may be used again.
 */
#pragma once
#include "err.h"

/* A namespace that is kept. The files are of its own /proc/net. */
struct net {
	int ns_fd, sockets_fd, traffic_fd;
};
#define NET_NONE ((struct net){ -1, -1, -1 })

/* The network of a cell whose builder keeps networks. */
struct net_place {
	struct net net;     /* of the cell; NONE: a new one is made */
	int        host_fd; /* borrowed: the builder's own, to which it goes back; -1: it keeps none, and stays in the cell's */
	bool       is_needless; /* the filter lets no socket of a network be made */
};
#define NET_PLACE_NONE ((struct net_place){ NET_NONE, -1, false })

/* The calling process moves into a new namespace for good. */
must_use int net_enter_empty(struct err *e);

/* The calling process is in it from then on. */
must_use int net_make(struct net *ret, struct err *e);
must_use int net_enter(int ns_fd, struct err *e);
/* In the one that the caller is in, once: the route of net_listeners.h. It goes to lo, and nowhere from there. */
must_use int net_add_route(struct err *e);
/* The one that the caller is in; -1 with errno. */
must_use int net_open_own(void);
void         net_close(struct net *n);

/*
 * No socket of any family is left in it, and no packet was ever sent. With every process gone, and when no process ever
 * had a socket that is not local (filter_notice.h), that leaves no difference from a new one.
 */
must_use bool net_is_quiet(const struct net *n);
