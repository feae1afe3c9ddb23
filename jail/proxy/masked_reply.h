/*
 * masked_reply.h - the reply to a request that had secrets: their bytes become asterisks, wherever they are in it
 *
 * Head and body are searched, also for a secret that is divided between two chunks: chunks are made anew, without extensions and
 * trailers. The number of bytes stays the same. A secret in another form (in Base64, reversed, compressed although brig-proxy asked
 * for no compression) is not found.
 */
#pragma once
#include "secret.h"

enum { REPLY_HEAD_MAX = 64 * 1024, REPLY_ROOM = REPLY_HEAD_MAX + NET_SECRET_VALUE_MAX + 64 };

struct reply {
	struct secret_mask mask;
	unsigned           state;
	uint64_t           left; /* bytes of this chunk */
	unsigned           digits;
	bool               is_done; /* the reply is complete */
};

void reply_begin(struct reply *r, const struct proxy_config *config, const char *host, uint16_t port);
/* The server answers "101 Switching Protocols": all bytes from here on, the head included, are masked without framing. */
void reply_is_tunnel(struct reply *r);

/*
 * Takes *taken bytes from in and writes *made bytes to out; room is at least REPLY_ROOM. is_end: nothing follows in; call again until
 * nothing is taken and nothing made. False: malformed, or a head that is longer than REPLY_HEAD_MAX.
 */
bool reply_step(struct reply *r, struct span in, bool is_end, char *out, size_t room, size_t *taken, size_t *made);
/* The last bytes wait for more. reply_flush() passes them on; call it when nothing came for a while. out holds REPLY_ROOM. */
bool   reply_holds(const struct reply *r);
size_t reply_flush(struct reply *r, char *out);
