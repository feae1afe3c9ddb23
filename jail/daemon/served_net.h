/*
 * served_net.h - the network of one run, as the door knows it
 *
 * The door reads none of what a program sends. It asks the process that watches the run for the cell's listening sockets, which
 * come when the program uses one, passes them to brig-proxy unread, tells that which rules hold for them, and reads in the end
 * what came of it. Whatever fails here leaves the program without a network: nothing listens then, and it is refused at once.
 */
#pragma once
#include "backend.h"
#include "loop.h"
#include "net_proxy.h"
#include "net_report.h"

struct served_net {
	struct loop_source   source; /* where the sockets come from; fd -1: they have come, or do not */
	struct loop         *loop;
	struct net_proxy    *proxy;  /* held; NULL: none serves it */
	const struct limits *limits;
	uint64_t             number; /* of the run, for the proxy */
	struct net_rules    *rules;  /* owned; NULL: it reaches nothing, or the proxy has them */
	int                  report; /* memory file, which the proxy writes; -1: the network was not used */
	bool                 is_named; /* it had rules */
	bool                 is_lost; /* it had, and no proxy took them */
	bool                 is_told_lost; /* by a call of its session */
};
#define SERVED_NET_NONE ((struct served_net){ .source.fd = -1, .report = -1 })

/* How a run with rules of its own begins. */
struct served_net_order {
	uint64_t                     number;
	const struct served_profile *profile;
	const struct limits         *limits; /* lives as long as the run */
	struct net_rules            *rules;  /* on the heap, becomes the network's; NULL: the run reaches nothing */
	int                          config; /* of a private run: net_config.h; borrowed */
	bool                         has_listeners; /* its cell does */
};

/* The run is on its way. *ret stays where it is until served_net_end(). */
void served_net_start(struct served_net *ret, struct loop *loop, const struct backend *backend, const struct run *run, const struct served_net_order *order);
/* It has a network, or should have had one. */
bool served_net_is_there(const struct served_net *n);
/* The run has ended: what the report does not tell by now reaches nothing. Then it is read, and served_net_end() follows. */
void served_net_stop(const struct served_net *n);
/* As it is now. It was written by a process that reads what strangers send, and is checked. */
void served_net_read(const struct served_net *n, struct net_report *ret);
/* For a later served_net_read_since(): on the heap; NULL where there is nothing yet, or memory is short. */
struct net_report *served_net_mark(const struct served_net *n);
/* What came since then: connections that are new or have moved. Figures are what was added. That there is no proxy any more is told once. */
void served_net_read_since(struct served_net *n, const struct net_report *mark, struct net_report *ret);
/* The run is over: the proxy closes all of its connections. */
void served_net_end(struct served_net *n);
