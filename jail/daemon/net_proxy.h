/*
 * net_proxy.h - brig-proxy of a profile, as the door reaches it
 *
 * One socket (proxy_protocol.h), which the profile's runs share: each tells the proxy over it when it begins and when it has
 * ended. When the last one lets it go it is closed, and that ends the proxy; so a proxy whose profile was replaced serves its
 * runs to their end. That of a private run is started with the first thing that it is told.
 */
#pragma once
#include "place.h"
#include "proxy_protocol.h"

struct net_proxy {
	int                  sock;   /* -1: not started yet, or it could not be */
	unsigned             holders;
	const struct places *places; /* not started yet: where its program is; else NULL */
	int                  program, config; /* then: what is executed, and what it is told; of the same version as we are */
};

/* One holder, the caller; takes the socket over. NULL: memory is short, and the socket is closed. */
struct net_proxy *net_proxy_open(int sock);
/* One of the door's own, not started yet. places: lives as long as it does. config: a sealed memory file with struct proxy_config, borrowed. NULL: something is short. */
struct net_proxy *net_proxy_later(const struct places *places, int config);
struct net_proxy *net_proxy_hold(struct net_proxy *p);
void              net_proxy_release(struct net_proxy *p); /* NULL may be */

/* 0 or -errno; does not wait. */
must_use int net_proxy_say(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n);
/* It has ended, or is about to. One that is not started yet has not. */
bool         net_proxy_is_gone(const struct net_proxy *p);
