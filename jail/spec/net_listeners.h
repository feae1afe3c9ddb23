/*
 * net_listeners.h - the sockets by which a cell's network leads to brig-proxy
 *
 * Made in the cell's network namespace by the process that builds the cell, given
 * away once, when the program first uses one, over the socket that the door sends for
 * it (LAUNCH_NETWORK), and closed there by then: without a proxy nothing listens, and a
 * program is refused at once.
 */
#pragma once
#include "net_rule.h"

#define NET_ROUTE_TEXT    "198.18.0.0/15" /* RFC 2544: for tests of devices; no public host has these */
#define NET_GATEWAY_TEXT  "198.18.0.1"    /* resolver and proxy, as programs see them */
#define NET_PROXY_URL     "http://198.18.0.1:3128"
#define NET_TRUST_PATH    "/etc/brig/trust.pem" /* certificates that programs need, where brig-proxy reads what they send */
enum {
	NET_ROUTE      = 0xc6120000, /* host order */
	NET_ROUTE_BITS = 15,
	NET_GATEWAY    = 0xc6120001,
	NET_NAMES      = 0xc6120100, /* the first address that stands for a name */
	NET_NAMES_MAX  = 4096,       /* of one run */
	NET_DNS_PORT   = 53,
	NET_PROXY_PORT = 3128,
};

/* Descriptors come in this order; then one for each port. */
enum { NET_LISTEN_DNS_UDP, NET_LISTEN_DNS_TCP, NET_LISTEN_PROXY, NET_LISTEN_PORTS, NET_LISTEN_MAX = NET_LISTEN_PORTS + NET_PORTS_MAX };

struct net_listeners {
	uint32_t ports;                /* descriptors: NET_LISTEN_PORTS + ports */
	uint16_t port[NET_PORTS_MAX];
};

/* From a peer that is not trusted. No port twice, none 0, none of the gateway's own (the kernel would refuse to listen at both). */
bool net_listeners_are_sound(const struct net_listeners *l);
