/*
 * net_listeners.h - the sockets by which a cell's network leads to brig-proxy
 *
 * The process that builds the cell (supervisor or launcher) opens them in the cell's
 * network namespace. When the program first uses one, that process sends them over
 * the socket that it got with LAUNCH_NETWORK, and closes its own copies: if brig-proxy
 * ends, nothing listens, and the program's connections are refused at once.
 */
#pragma once
#include "net_rule.h"

#define NET_ROUTE_TEXT    "198.18.0.0/15" /* RFC 2544: for benchmarks; no public host has these */
#define NET_GATEWAY_TEXT  "198.18.0.1"    /* resolver and proxy, as programs see them */
#define NET_PROXY_URL     "http://198.18.0.1:3128"
#define NET_TRUST_PATH    "/etc/brig/trust.pem" /* certificates that programs must trust when brig-proxy terminates their TLS */
enum {
	NET_ROUTE      = 0xc6120000, /* host order */
	NET_ROUTE_BITS = 15,
	NET_GATEWAY    = 0xc6120001,
	NET_NAMES      = 0xc6120100, /* the first address that stands for a name */
	NET_NAMES_MAX  = 4096,       /* of one run */
	NET_DNS_PORT   = 53,
	NET_PROXY_PORT = 3128,
};

/* The order of the descriptors in the message; after these, one for each port. */
enum { NET_LISTEN_DNS_UDP, NET_LISTEN_DNS_TCP, NET_LISTEN_PROXY, NET_LISTEN_PORTS, NET_LISTEN_MAX = NET_LISTEN_PORTS + NET_PORTS_MAX };

struct net_listeners {
	uint32_t ports;                /* used entries of port; the message has NET_LISTEN_PORTS + ports descriptors */
	uint16_t port[NET_PORTS_MAX];
};

/* Checks a struct from an untrusted peer: no port twice, none 0, none of the gateway's (a second listener there would fail). */
bool net_listeners_are_sound(const struct net_listeners *l);
