/*
 * request_body.h - the body of a request on its way to the server, framed anew
 *
 * Only what belongs to the body passes: bytes behind it (a second request, which
 * was not checked) are never taken. Chunks are made anew; their extensions are refused, trailers are
 * checked and left out.
 */
#pragma once
#include "chunk_reader.h"
#include "request_head.h"

enum { REQUEST_BODY_ROOM = 64 }; /* the smallest out_size */

struct request_body {
	enum request_framing framing;
	struct chunk_reader  chunk;
	uint64_t             left; /* of REQUEST_LENGTH */
	bool                 is_done, has_failed;
};

void request_body_init(struct request_body *b, const struct request_head *h);

/*
 * Takes *taken bytes from in and writes *made bytes to out, as many as are there and fit. Call again with what was not
 * taken. Neither taken nor made: it needs more input or more room. False: malformed; end the connection, so that the
 * server finds the body cut off.
 */
bool request_body_copy_step(struct request_body *b, struct span in, char *out, size_t out_size, size_t *taken,
			    size_t *made);
