/*
 * run.h - one run that brig-proxy serves: its rules, its listeners, its bounds
 *
 * Everything that belongs to it ends with it. What one run uses takes nothing
 * from another: connections, bytes and speed are bounded for each, and of the descriptors
 * that are left no run gets more than half.
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
	uint16_t           port; /* that programs connect to; 0: the proxy */
	bool               is_paused;
};

struct run {
	LIST_ENTRY(run) link;
	struct proxy      *proxy;
	uint64_t           number;
	struct policy      policy;  /* rules: a mapping, owned */
	struct net_report *report;  /* a mapping, owned */
	struct loop_source channel; /* over which the listeners come; fd -1: they came, or will not */
	struct listener    listener[NET_LISTEN_MAX];
	struct loop_timer  accept_again; /* some are paused */
	struct name_table  names;
	struct dns_service dns;
	struct byte_rate   rate;
	struct connections connections;
	uint64_t           open, connections_max;
	uint64_t           bytes, bytes_max;
};

/* Owns the three descriptors, also when it fails. */
must_use int run_begin(struct proxy *proxy, const struct proxy_message *message, int fds[3], struct err *e);
void         run_end(struct run *run);

/* How many bytes may be read for it now; 0: *reason says that there will be no more, or is NONE, and the rate says wait. */
size_t run_allowance(struct run *run, enum net_reason *reason);
void   run_spend(struct run *run, size_t bytes);
/* One run more? Its limits are in range, and there are descriptors for its listeners. */
must_use int run_may_begin(const struct proxy *proxy, const struct proxy_message *message, struct err *e);
/* One connection more? NONE, or why not. */
enum net_reason run_may_open(const struct run *run);
