/*
 * sse.h - HTTP+SSE, the transport of 2024-11-05
 *
 * One event stream (GET) brings first the URL for POSTs, the endpoint, then every answer. It is used when the entry of the
 * server says so, and, as the protocol wants it, when a server refuses an initialize over Streamable HTTP with 400, 404 or 405.
 * An endpoint of another origin than the URL of the server is refused: the headers of a POST contain secrets. When the stream
 * ends, so does brig-mcp-remote.
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
	int64_t        until_ms; /* the deadline for the endpoint */
	bool           is_over;  /* the stream has ended, or there is none */
	char           why[300]; /* why the stream has ended, or the endpoint is refused */
};

/* Takes the endpoint from the stream; a second one changes nothing. libcurl may call it. */
void sse_set_endpoint(struct remote *r, const char *text, size_t len);
void sse_done(struct remote *r);

/* libcurl has finished a transfer. true: the exchange is kept, because HTTP+SSE is tried now, or because its answer comes on the stream. */
bool sse_start_fallback(struct exchange *x, CURLcode code, long status);
bool sse_await_answer(struct exchange *x, long status);
void sse_on_stream_end(const struct exchange *stream, CURLcode code, long status);

/* The absolute URL of the endpoint that a server names, malloc'ed. NULL: why says what is wrong with it. why must be "" before. Pure. */
char *sse_resolve_endpoint(const char *url, const char *text, size_t len, char *why, size_t why_len);
