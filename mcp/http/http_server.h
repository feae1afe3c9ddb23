/*
 * http_server.h - Streamable HTTP over one listening socket: its requests, and the paths beside /mcp.
 */
#pragma once
#include "http_admission.h"
#include "http_cells.h"
#include "http_daemon.h"
#include "http_ended.h"
#include "mcp.h"

struct http_server {
	struct mcp        *mcp;
	struct http_daemon http;
	struct admission   admission;
	char               url[300];    /* for messages to people */
	TAILQ_HEAD(, http_post) posts;
	struct cells       cells;
	struct ended       ended;
	size_t             bodies;      /* bytes of those that are being received */
	bool               drains;      /* refuses new messages, and ends the loop when the last answer was sent */
	struct loop_timer  drained;     /* the deadline of that */
};

/* Refuses settings with which serving would not be safe; then listens. */
must_use int http_server_open(struct http_server *ret, struct mcp *m, struct err *e);
/*
 * Ends the server gracefully: calls under way are answered, new ones get 503, as does /healthz; then m->ends is set.
 * Calls that are left after ms fail with an error. A second call, or ms of 0, ends the loop at once.
 */
void         http_server_drain(struct http_server *s, uint64_t ms);
/* Ends every call and every connection. */
void         http_server_close(struct http_server *s);
