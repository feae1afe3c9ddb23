/*
 * net_proxy.h - the server's end of a brig-proxy, with a count of its holders
 *
 * The runs of a profile share one socket (proxy_protocol.h), over which the server reports when each of them begins and
 * ends. When the last holder releases it, the socket is closed, and that ends brig-proxy: so one whose profile was
 * replaced serves its runs to their end. The brig-proxy of a private run is started with its first message.
 */
#pragma once
#include "loop.h"
#include "paths.h"
#include "proxy_protocol.h"
#include "supervisor_protocol.h"

struct net_proxy {
	int                      sock;   /* -1: not started yet, or the start failed */
	unsigned                 holders;
	const struct brig_paths *places; /* until it is started: where its executable is; then NULL */
	/* likewise: that executable, of the same version as this one, and its configuration; then -1 */
	int                      program, config;
	struct loop             *loop;   /* waits until the socket takes more; NULL: nothing is unsent */
	struct loop_source       source;
	/* numbers of runs that are over, for which the socket was full */
	uint64_t                 ended[MONITOR_RUNS_MAX];
	size_t                   ended_len;
};

/* Takes the socket over. The caller is the first holder. NULL: memory is short, and the socket is closed. */
struct net_proxy *net_proxy_new(int sock);
/*
 * One for a private run, not started yet. places must outlive it. config: a sealed memory file with struct
 * proxy_config; it is duplicated. NULL: there is no executable, or memory or descriptors are short.
 */
struct net_proxy *net_proxy_new_unstarted(const struct brig_paths *places, int config);
struct net_proxy *net_proxy_hold(struct net_proxy *p);
void              net_proxy_release(struct net_proxy *p); /* p may be NULL */

/* A run begins. 0 or -errno; does not wait. -EAGAIN: brig-proxy does not read what it is sent. */
must_use int net_proxy_send_new_run(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n);
/*
 * A run that has begun is over. If the socket is full, its number is kept and sent from loop, which must live as long
 * as p: without it brig-proxy would keep the run's sockets for ever. No run begins meanwhile, so there are never more
 * numbers than runs.
 */
void         net_proxy_send_ended_run(struct net_proxy *p, struct loop *loop, uint64_t run);
/* It has ended, or is about to. False when it is not started yet. */
bool         net_proxy_is_gone(const struct net_proxy *p);
