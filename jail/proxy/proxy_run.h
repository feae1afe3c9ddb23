/*
 * proxy_run.h - one run that brig-proxy serves: its rules, its listeners, its bounds
 *
 * Everything that belongs to a run ends with it. No run can starve another: connections,
 * bytes and rate are bounded for each, and a run gets at most half of the descriptors
 * that the others leave. All descriptors of a run are in a loop of its own, which is one
 * source of the proxy's: so runs are served in turn, however many events each has, and
 * one that has used its share of the processor (cpu_share.h) is left out for a while.
 */
#pragma once
#include "byte_rate.h"
#include "proxy_connection.h"
#include "cpu_share.h"
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
	struct loop        loop; /* of its descriptors; its timers are the proxy's */
	struct loop_source events; /* that loop, in the proxy's */
	struct cpu_share   cpu;
	struct loop_timer  rested; /* set while the run waits for its share of the processor */
	uint64_t           cpus; /* thousandths, of its limits */
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
	uint64_t           user;
};

/* fds: channel, rules, report (proxy_protocol.h). Takes ownership of all three, also when it fails. */
must_use int proxied_run_start(struct proxy *proxy, const struct proxy_message *message, int fds[3], struct err *e);
void         proxied_run_end_and_free(struct run *run);

/* How many bytes may be read for the run now. 0: if *reason is NONE, the rate makes it wait; otherwise there will be no
 * more. */
size_t run_bytes_allowed(struct run *run, enum net_reason *reason);
void   run_spend_bytes(struct run *run, size_t bytes);
/* May one more run begin: is its connections_max in range, and are there descriptors for its listeners? */
must_use int run_check_message_bounds(const struct proxy *proxy, const struct proxy_message *message, struct err *e);
/* May the run have one more connection? NONE, or why not. */
enum net_reason run_check_new_connection(const struct run *run);
