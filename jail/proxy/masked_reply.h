/*
 * masked_reply.h - the reply to a request that had secrets: their bytes become asterisks, wherever they are in it
 *
 * In the head, in the body, and in a body of chunks also where two of them divide a secret: chunks are made anew, without
 * their extensions and trailers. Lengths stay as they are. A server that repeats a secret in another form (in Base64, reversed, compressed
 * although nothing compressed was asked for) is not understood.
 */
#pragma once
#include "secret.h"

enum { REPLY_HEAD_MAX = 64 * 1024, REPLY_ROOM = REPLY_HEAD_MAX + NET_SECRET_VALUE_MAX + 64 };

struct reply {
	struct secret_mask mask;
	unsigned           state;
	uint64_t           left; /* of a chunk */
	unsigned           digits;
	bool               is_done; /* nothing more belongs to it */
};

void reply_begin(struct reply *r, const struct proxy_config *config, const char *host, uint16_t port);
/* "101 Switching Protocols" was agreed upon: from here on these are messages of a WebSocket. */
void reply_is_tunnel(struct reply *r);

/*
 * Takes from in, makes out, which holds REPLY_ROOM at least. is_end: nothing follows in; call until nothing is taken and nothing made.
 * False: malformed, or a head that is longer than REPLY_HEAD_MAX.
 */
bool reply_step(struct reply *r, struct span in, bool is_end, char *out, size_t room, size_t *taken, size_t *made);
