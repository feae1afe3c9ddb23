/*
 * server_reply.h - the reply to one request on its way to the program: where it ends, and with asterisks for the
 * secrets of the request
 *
 * Without secrets nothing changes but chunks, which are made anew, without extensions and trailers; a head that is not
 * plain lets all bytes pass up to end of file. With secrets such a head is refused, and so is one of a part (206,
 * multipart/byteranges) or of another form (a coding, a charset that is unlike ASCII). Head and body are searched, also
 * for a secret that two chunks, or two frames of a WebSocket message, divide; frames are made anew as well. The number
 * of bytes stays the same. A secret in another form (in Base64, reversed) is not found.
 */
#pragma once
#include "chunk_reader.h"
#include "reply_head.h"
#include "secret.h"

enum { REPLY_ROOM = NET_SECRET_VALUE_MAX + 64 }; /* beyond the bytes that come in */

struct reply {
	struct secret_mask mask;
	unsigned           state;
	struct chunk_reader chunk;
	uint64_t           left; /* bytes of the body, or of this frame */
	bool               is_of_head, upgrades; /* the request */
	/* "101 Switching Protocols": from here on, all bytes of the program go to the server */
	bool               has_switched;
	bool               closes;       /* the server takes no further request */
	bool               is_done;      /* the reply is complete */
	bool               is_last, has_begun; /* this frame ends its message; a part of the message was written */
	uint8_t            opcode;             /* of the message */
};

/* config NULL: no secrets. is_of_head: the request was HEAD, whose reply has no body. */
void reply_init(struct reply *r, const struct proxy_config *config, const char *host, uint16_t port, bool is_of_head,
		 bool upgrades);
/* From here on *left bytes (UINT64_MAX: up to end of file) pass as they are, and the caller may move them itself. */
bool reply_passes_unread(const struct reply *r, uint64_t *left);

/*
 * Takes *taken bytes from in and writes *made bytes to out; room is at least in.len + REPLY_ROOM. is_end: nothing
 * follows in; call again until nothing is taken and nothing made. False: malformed, or refused.
 */
bool reply_step(struct reply *r, struct span in, bool is_end, char *out, size_t room, size_t *taken, size_t *made);
/* The last bytes wait for more. reply_flush_held() passes them on; call it when nothing came for a while. out holds
 * REPLY_ROOM. */
bool   reply_holds_bytes(const struct reply *r);
size_t reply_flush_held(struct reply *r, char *out);
