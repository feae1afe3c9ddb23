/*
 * net_proxy.h - brig-proxy of a profile, as the door reaches it
 *
 * One socket (proxy_protocol.h), which the profile's runs share: each tells the proxy over it when it begins and when it has
 * ended. When the last one lets it go it is closed, and that ends the proxy; so a proxy whose profile was replaced serves its
 * runs to their end.
 */
#pragma once
#include "proxy_protocol.h"

struct net_proxy {
	int      sock;
	unsigned holders;
};

/* One holder, the caller; takes the socket over. NULL: memory is short, and the socket is closed. */
struct net_proxy *net_proxy_open(int sock);
struct net_proxy *net_proxy_hold(struct net_proxy *p);
void              net_proxy_release(struct net_proxy *p); /* NULL may be */

/* 0 or -errno; does not wait. */
must_use int net_proxy_say(struct net_proxy *p, const struct proxy_message *message, const int *fds, size_t n);
/* It has ended, or is about to. */
bool         net_proxy_is_gone(const struct net_proxy *p);
