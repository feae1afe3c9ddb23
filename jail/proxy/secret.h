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
bool secret_exists_for_host(const struct proxy_config *config, const char *host, uint16_t port);
/* The headers to set, at most NET_SECRETS_MAX; they point into config. Returns how many. */
size_t secret_headers(const struct proxy_config *config, const char *host, uint16_t port,
		      struct request_set set[NET_SECRETS_MAX]);
/* False for methods whose reply may repeat the request (TRACE, TRACK, OPTIONS, in any case of letters): it would
 * contain the secret. */
bool secret_allows_method(const struct request_head *h);

/*
 * Replies on their way to the program: each secret of host and port becomes asterisks, also across ends of buffers.
 *
 * What is seen of a reply, and when, must not depend on how much of a secret its last bytes are like: a program that
 * can choose the end of a reply would try one character after the other. So the last bytes, one less than the longest
 * secret has, are always held back until others come, whatever they are, and only whole secrets are masked.
 * secret_mask_flush() passes them on when a reply pauses.
 */
struct secret_mask {
	const struct net_secret *secret[NET_SECRETS_MAX];
	size_t                   secrets, longest;
	size_t                   held, passed; /* bytes in hold; how many of them were passed on already */
	size_t                   mask_left;    /* of a secret that goes on in hold */
	bool                     has_masked;
	bool                     is_first[256]; /* some secret begins with this byte */
	char                     hold[NET_SECRET_VALUE_MAX];
};
void secret_mask_init(struct secret_mask *m, const struct proxy_config *config, const char *host, uint16_t port);
/* Bytes to pass on in place of in; out holds len + NET_SECRET_VALUE_MAX. Returns how many: fewer are held back, more
 * come out of the hold. */
size_t secret_mask_step(struct secret_mask *m, const char *in, size_t len, char *out);
/* Masks secrets that are whole in bytes; what is held back stays. */
void secret_mask_whole(struct secret_mask *m, char *bytes, size_t n);
/* What is held back, because nothing more came for a while. If it was the beginning of a secret, its rest is masked.
 * out holds NET_SECRET_VALUE_MAX. */
size_t secret_mask_flush(struct secret_mask *m, char *out);
/* The same, at the end of what could be a secret. */
size_t secret_mask_finish(struct secret_mask *m, char *out);
