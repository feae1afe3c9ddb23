/*
 * run.h - one run that brig-proxy serves: its rules, its listeners, its bounds
 *
 * Everything that belongs to a run ends with it. No run can starve another: connections,
 * bytes and rate are bounded for each, and a run gets at most half of the descriptors
 * that the others leave.
 */
#pragma once
#include "byte_rate.h"
#include "connection.h"
#include "dns_service.h"
#include "name_table.h"
#include "permission.h"

struct listener {
	struct loop_source source; /* fd -1: none */
	struct run        *run;
	uint16_t           port; /* to which programs connect; 0: the proxy port, or the resolver */
	bool               is_paused;
};

struct run {
	LIST_ENTRY(run) link;
	struct proxy      *proxy;
	uint64_t           number;
	struct policy      policy;  /* rules: a mapping, owned */
	struct net_report *report;  /* a mapping, owned */
	struct loop_source channel; /* socket over which the listeners come; fd -1: they came, or will not */
	struct listener    listener[NET_LISTEN_MAX];
	struct loop_timer  accept_again; /* set while a listener is paused */
	struct name_table  names;
	struct dns_service dns;
	struct byte_rate   rate;
	struct lookups    *lookups; /* owned; NULL: no name was looked up */
	struct connections connections;
	uint64_t           open, connections_max;
	uint64_t           bytes, bytes_max;
	uint64_t           turn, taken; /* the turn (proxy.h) in which the run last had events, and how many */
	struct byte_rate   opens;       /* a byte is a new connection */
	uint64_t           user;
};

/* fds: channel, rules, report (proxy_protocol.h). Takes ownership of all three, also when it fails. */
must_use int run_begin(struct proxy *proxy, const struct proxy_message *message, int fds[3], struct err *e);
void         run_end(struct run *run);

/* How many bytes may be read for the run now. 0: if *reason is NONE, the rate makes it wait; otherwise there will be no more. */
size_t run_allowance(struct run *run, enum net_reason *reason);
void   run_spend(struct run *run, size_t bytes);
/*
 * An event of one of the run's connections: false when the run has had its share of this turn of the loop. epoll reports the event again, so a
 * run with hundreds of busy connections does not delay the others for longer.
 */
bool   run_takes_turn(struct run *run);
/* May one more run begin: is its connections_max in range, and are there descriptors for its listeners? */
must_use int run_may_begin(const struct proxy *proxy, const struct proxy_message *message, struct err *e);
/* May the run have one more connection? NONE, or why not. */
enum net_reason run_may_open(const struct run *run);
