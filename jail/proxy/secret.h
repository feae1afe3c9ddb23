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
/* A server that repeats a request (TRACE, maybe OPTIONS, in any case of letters) would hand the secret over. */
bool secret_allows(const struct request_head *h);

/*
 * Replies on their way to the program: each secret of host and port becomes asterisks, also across ends of buffers.
 *
 * A tail of a reply that begins like a secret waits for what follows. So short a beginning as `little` does not: it tells next to
 * nothing, and a websocket's message would wait for ever because of one letter. The rest of a secret is masked all the same.
 */
struct secret_mask {
	const struct net_secret *secret[NET_SECRETS_MAX];
	size_t                   secrets, little;
	size_t                   held, passed; /* bytes in hold; how many of them went already */
	size_t                   mask_left;    /* of a secret that goes on in hold */
	bool                     has_masked;
	bool                     is_first[256]; /* some secret begins with this byte */
	char                     hold[NET_SECRET_VALUE_MAX];
};
void secret_mask_begin(struct secret_mask *m, const struct proxy_config *config, const char *host, uint16_t port);
/* Bytes to pass on in place of in; out holds len + NET_SECRET_VALUE_MAX. Returns how many: fewer are held back, more come out of the hold. */
size_t secret_mask_step(struct secret_mask *m, const char *in, size_t len, char *out);
/* At the end of the reply: what is held back, as asterisks. out holds NET_SECRET_VALUE_MAX. */
size_t secret_mask_end(struct secret_mask *m, char *out);
