/*
 * sse.h - HTTP+SSE, the transport of 2024-11-05: one stream (GET) brings the address of the POSTs, its endpoint, then every answer.
 *
 * It is spoken when the entry says so, and when a server refuses an initialize
 * over Streamable HTTP with 400, 404 or 405, as the protocol has it. The
 * endpoint is of the origin of the address, or it is refused: headers with
 * secrets go along. A stream that ends is the end of the server.
 */
#pragma once
#include "defs.h"

#include <curl/curl.h>

struct remote;
struct exchange;

enum sse_state { SSE_NO, SSE_WANTED, SSE_OPENS, SSE_OPEN };

struct sse {
	enum sse_state state;
	char          *endpoint; /* NULL: not known yet */
	int64_t        until_ms; /* by then it is */
	bool           is_over;  /* the stream has ended, or there is none */
	char           why[300]; /* of that, or why the endpoint is refused */
};

/* The first event of the stream; later ones change nothing. May be called by libcurl. */
void sse_take_endpoint(struct remote *r, const char *text, size_t len);
void sse_done(struct remote *r);

/* libcurl has done with one. true: it is kept, as HTTP+SSE is tried; as its answer comes on the stream. */
bool sse_begins(struct exchange *x, CURLcode code, long status);
bool sse_awaits(struct exchange *x, long status);
void sse_over(const struct exchange *stream, CURLcode code, long status);

/* The address that a server names as its endpoint, malloc'ed. NULL: why says what is wrong with it. Pure. */
char *sse_endpoint(const char *url, const char *text, size_t len, char *why, size_t why_len);
