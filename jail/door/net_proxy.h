/*
 * net_proxy.h - the door's end of a brig-proxy, with a count of its holders
 *
 * The runs of a profile share one socket (proxy_protocol.h), over which the door says when each of them begins and ends. When the
 * last holder releases it, the socket is closed, and that ends brig-proxy: so one whose profile was replaced serves its runs to
 * their end. The brig-proxy of a private run is started with its first message.
 */
#pragma once
#include "place.h"
#include "proxy_protocol.h"

struct net_proxy {
	int                  sock;   /* -1: not started yet, or the start failed */
	unsigned             holders;
	const struct places *places; /* until it is started: where its executable is; then NULL */
	int                  program, config; /* likewise: that executable, of the same version as this one, and its configuration; then -1 */
};

/* Takes the socket over. The caller is the first holder. NULL: memory is short, and the socket is closed. */
struct net_proxy *net_proxy_open(int sock);
/*
 * One for a private run, not started yet. places must outlive it. config: a sealed memory file with struct proxy_config; it is
 * duplicated. NULL: there is no executable, or memory or descriptors are short.
 */
struct net_proxy *net_proxy_later(const struct places *places, int config);
struct net_proxy *net_proxy_hold(struct net_proxy *p);
void              net_proxy_release(struct net_proxy *p); /* p may be NULL */

/* 0 or -errno; does not wait. */
must_use int net_proxy_send(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n);
/* It has ended, or is about to. False when it is not started yet. */
bool         net_proxy_is_gone(const struct net_proxy *p);
