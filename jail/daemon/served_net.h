/*
 * served_net.h - the network of one run, as the door knows it
 *
 * The door reads none of what a program sends. It asks the process that watches the run to give the cell's listening sockets
 * to brig-proxy, tells that which rules hold for them, and reads in the end what came of it. Whatever fails here leaves the
 * program without a network: nothing listens then, and it is refused at once.
 */
#pragma once
#include "backend.h"
#include "net_proxy.h"
#include "net_report.h"

struct served_net {
	struct net_proxy *proxy;  /* held; NULL: none serves it */
	uint64_t          number; /* of the run, for the proxy */
	int               report; /* memory file, which the proxy writes; -1: none */
	bool              is_lost; /* it has rules, and no proxy took them */
};
#define SERVED_NET_NONE ((struct served_net){ .report = -1 })

/* How a run with rules of its own begins. */
struct served_net_order {
	uint64_t                     number;
	const struct served_profile *profile;
	const struct limits         *limits;
	int                          rules; /* sealed memory file with struct net_rules; -1: it reaches nothing */
	int                          config; /* of a private run: net_config.h */
	bool                         has_listeners; /* its cell does */
};

/* The run is on its way. */
void served_net_start(struct served_net *ret, const struct backend *backend, const struct run *run, const struct served_net_order *order);
/* It has a network, or should have had one. */
bool served_net_is_there(const struct served_net *n);
/* As it is now. It was written by a process that reads what strangers send, and is checked. */
void served_net_read(const struct served_net *n, struct net_report *ret);
/* For a later served_net_read_since(): on the heap; NULL where there is nothing yet, or memory is short. */
struct net_report *served_net_mark(const struct served_net *n);
/* What came since then: connections that are new or have moved. Figures are what was added. */
void served_net_read_since(const struct served_net *n, const struct net_report *mark, struct net_report *ret);
/* The run is over: the proxy closes all of its connections. */
void served_net_end(struct served_net *n);
