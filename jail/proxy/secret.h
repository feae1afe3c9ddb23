/*
 * secret.h - which secrets belong to a request, and their bytes in replies
 *
 * The program never has the value: brig-proxy sets the header in requests to exactly one host and
 * port, over TLS after it has checked the certificate, and masks what a reply repeats of the value.
 */
#pragma once
#include "proxy_protocol.h"
#include "request_head.h"

/* A secret belongs to this host and port, so TLS to it is terminated. */
bool secret_is_for(const struct proxy_config *config, const char *host, uint16_t port);
/* The headers to set, at most NET_SECRETS_MAX; they point into config. Returns how many. */
size_t secret_headers(const struct proxy_config *config, const char *host, uint16_t port, struct request_set set[NET_SECRETS_MAX]);
/* False for methods whose reply may repeat the request (TRACE, TRACK, OPTIONS, in any case of letters): it would contain the secret. */
bool secret_allows(const struct request_head *h);

/*
 * Masks replies on their way to the program: each secret of host and port becomes asterisks, also across the ends of buffers.
 *
 * Last bytes that could begin a secret are held back until more bytes decide. Up to `little` such bytes are passed on at once: they tell
 * next to nothing, and a WebSocket message would wait for ever because of one letter. If the secret follows, its rest is masked.
 */
struct secret_mask {
	const struct net_secret *secret[NET_SECRETS_MAX];
	size_t                   secrets, little;
	size_t                   held, passed; /* bytes in hold; how many of them were passed on already */
	size_t                   mask_left;    /* bytes from the beginning of hold that belong to a secret found before */
	bool                     has_masked;
	bool                     is_first[256]; /* some secret begins with this byte */
	char                     hold[NET_SECRET_VALUE_MAX];
};
void secret_mask_begin(struct secret_mask *m, const struct proxy_config *config, const char *host, uint16_t port);
/* Writes the bytes to pass on to out, which holds len + NET_SECRET_VALUE_MAX. Returns how many: some of in may stay in hold, older ones leave it. */
size_t secret_mask_step(struct secret_mask *m, const char *in, size_t len, char *out);
/* At the end of the reply: what is held back, as asterisks. out holds NET_SECRET_VALUE_MAX. */
size_t secret_mask_end(struct secret_mask *m, char *out);
