/*
 * proxy_protocol.h - the messages of the server to brig-proxy
 *
 * PROXY_CONFIG_FD: a sealed memory file with one struct proxy_config, read once.
 * PROXY_FD: a SOCK_SEQPACKET socket from the server; structs of a fixed size, no
 * answers. End of file ends brig-proxy, and every connection with it. A message of
 * another size, kind or number of descriptors ends it, too.
 *
 *   BEGIN   three descriptors: a socket, over which one struct net_listeners comes with the listening sockets of
 *           the cell (net_listeners.h); a sealed memory file with net_rules_size() bytes of the run's struct
 *           net_rules; a memory file of the size of struct net_report, which brig-proxy writes
 *   END     no descriptors. The run has ended; the server no longer waits for changes of the report
 *
 * A run reaches a target that its own rules match, that allow or ceiling of the profile matches, and that deny does not
 * match.
 */
#pragma once
#include "net_report.h"
#include "net_rule.h"

#define PROXY_PROGRAM "proxy" /* the executable, beside the others of libexec */
enum {
	PROXY_FD        = 3,
	PROXY_CONFIG_FD = 4,
	PROXY_LOCK_FD   = 5, /* holds the lock on its host id; must stay open, and has no other use */
	PROXY_FDS_END,
};

enum {
	NET_SECRETS_MAX       = 16,
	NET_SECRET_NAME_MAX   = 64,
	NET_SECRET_HEADER_MAX = 64,
	NET_SECRET_VALUE_MAX  = 8192, /* of the whole value of the header, as it is sent */
	NET_PEM_MAX           = 8192,
};

struct net_secret {
	char     name[NET_SECRET_NAME_MAX];     /* of the environment variable with the placeholder */
	char     host[NET_HOST_MAX];            /* the only host that gets it, over TLS */
	uint16_t port;
	char     header[NET_SECRET_HEADER_MAX]; /* name of the header, lower case */
	char     value[NET_SECRET_VALUE_MAX];   /* the whole value of the header; no control characters */
	uint32_t secret_from, secret_len;       /* the part of value that is secret and is masked in replies */
};

struct proxy_config {
	struct net_rules  allow, ceiling, deny;
	uint32_t          has_ca; /* 0: no TLS is terminated */
	char              ca_cert[NET_PEM_MAX], ca_key[NET_PEM_MAX]; /* PEM; made by brig-proxy --make-ca */
	uint32_t          secrets;
	struct net_secret secret[NET_SECRETS_MAX];
	char              upstream[256]; /* "HOST:PORT" of the host's own HTTP proxy (CONNECT); "": none */
};

enum proxy_kind { PROXY_BEGIN = 1, PROXY_END };

struct proxy_message {
	uint32_t kind;
	uint64_t run;         /* the server's number for the run */
	uint64_t bytes_max, connections_max, rate_max; /* BEGIN: net_bytes, net_connections, net_rate (bytes a second; 0: no bound) */
	uint64_t cpus;        /* BEGIN: the limit, in thousandths: so much of one processor brig-proxy may spend for it */
	uint64_t user;        /* BEGIN: whose run it is; connections of all runs of a user have a bound, too */
};
