/*
 * served_net.h - the network of one run, as the server knows it
 *
 * The server reads nothing that a program sends. It asks the process that watches the run for the cell's listening
 * sockets. They come when the program first uses one; the server passes them to brig-proxy unread, with the run's
 * rules, and reads the report of brig-proxy when the run has ended. If anything fails, nothing listens, and the
 * program's connections are refused at once.
 */
#pragma once
#include "backend.h"
#include "loop.h"
#include "net_proxy.h"
#include "net_report.h"

enum served_net_state {
	SERVED_NET_NOT_ASKED_FOR, /* the run has no rules: it reaches nothing */
	SERVED_NET_AWAITS_USE,    /* the program has used no listening socket yet */
	SERVED_NET_UNUSED,        /* its cell is gone, and it has used none */
	SERVED_NET_IN_PROXY,      /* brig-proxy has the sockets and the rules, and writes the report */
	SERVED_NET_LOST,          /* the run has rules, and no brig-proxy serves it */
	SERVED_NET_LOSS_REPORTED, /* likewise, and a call in its session has reported that */
};

struct served_net {
	enum served_net_state state; /* changed by served_net_set_state() alone */
	struct loop_source   source; /* receives the sockets; fd -1: they have come, or will not */
	struct loop         *loop;
	struct net_proxy    *proxy;  /* the run is one of its holders; NULL: none serves the run */
	const struct limits *limits;
	uint64_t             number, user; /* of the run, for the proxy */
	struct net_rules    *rules;  /* owned; NULL: the run reaches nothing, or brig-proxy has them */
	int                  report; /* memory file, which the proxy writes; -1: the network was not used */
};
#define SERVED_NET_NONE ((struct served_net){ .source.fd = -1, .report = -1 })

/* Arguments of served_net_start(). */
struct served_net_request {
	uint64_t                     number, user; /* user: whose run it is */
	const struct served_profile *profile;
	const struct limits         *limits; /* lives as long as the run */
	/* on the heap; served_net_start() takes them over; NULL: the run reaches nothing */
	struct net_rules            *rules;
	int                          config; /* of a private run: net_config.h; borrowed */
	bool                         has_listeners; /* its cell has listening sockets */
};

/* Called after the run was started. *ret must not move until served_net_release(). */
void served_net_start(struct served_net *ret, struct loop *loop, const struct backend *backend, const struct run *run,
		      const struct served_net_request *request);
/* The run has a network, or should have had one. */
bool served_net_was_asked_for(const struct served_net *n);
/*
 * The run has ended: a connection that is not in the report by now reaches nothing. served_net_read_report() and
 * served_net_release() follow.
 */
void served_net_mark_over(const struct served_net *n);
/* The report as it is now, copied and checked: brig-proxy, which writes it, reads untrusted data. */
void served_net_read_report(const struct served_net *n, struct net_report *ret);
/* For a later served_net_read_report_since(): on the heap; NULL: there is no report yet, or memory is short. */
struct net_report *served_net_copy_report(const struct served_net *n);
/*
 * The changes since mark (NULL: since the beginning): connections that are new or have changed, and figures less those
 * of mark. A brig-proxy that is gone is reported once.
 */
void served_net_read_report_since(struct served_net *n, const struct net_report *mark, struct net_report *ret);
/* The run is over: brig-proxy closes all of its connections. */
void served_net_release(struct served_net *n);
