/*
 * secret.h - which secrets belong to a request, and their bytes in replies
 *
 * The program never has the value: the proxy sets the header on the way to
 * exactly one host and port, over TLS that it checked, and hides what a reply repeats of it.
 */
#pragma once
#include "proxy_protocol.h"
#include "request_head.h"

/* Some secret is of this host and port: its TLS is to be terminated. */
bool secret_is_for(const struct proxy_config *config, const char *host, uint16_t port);
/* The headers to set, at most NET_SECRETS_MAX; they point into config. Returns how many. */
size_t secret_headers(const struct proxy_config *config, const char *host, uint16_t port, struct request_set set[NET_SECRETS_MAX]);
/* A server that repeats a request (TRACE, maybe OPTIONS) would hand the secret over. */
bool secret_allows(const struct request_head *h);

/* Replies on their way to the program: each secret of host and port becomes asterisks, also across ends of buffers. */
struct secret_mask {
	const struct net_secret *secret[NET_SECRETS_MAX];
	size_t                   secrets;
	size_t                   held; /* bytes in hold, which may be the beginning of a secret */
	char                     hold[NET_SECRET_VALUE_MAX];
	bool                     has_masked;
};
void secret_mask_begin(struct secret_mask *m, const struct proxy_config *config, const char *host, uint16_t port);
/* Bytes to pass on, in place of in (which is changed): out holds len + NET_SECRET_VALUE_MAX. Returns how many; the others are held back. */
size_t secret_mask_step(struct secret_mask *m, const char *in, size_t len, char *out);
/* At the end of the reply: what was held back. */
size_t secret_mask_end(struct secret_mask *m, char *out);
