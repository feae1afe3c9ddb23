/*
 * http_server.h - Streamable HTTP over one listening socket: connections, their limits, and the paths beside /mcp.
 *
 * libmicrohttpd reads and writes, in the only thread: its epoll descriptor is a source of the loop. A connection that has not
 * sent its request by a deadline is closed, so that slow senders cannot take all the places. When all places are taken, the
 * connection that was quiet longest is closed.
 */
#pragma once
#include "http_admission.h"
#include "http_cells.h"
#include "http_ended.h"
#include "mcp.h"

#include <sys/socket.h>

struct MHD_Daemon;
struct http_post;

/*
 * The loop watches the socket as well: libmicrohttpd does not see that a peer has closed while its request is being worked on,
 * or after half a request.
 */
struct http_connection {
	TAILQ_ENTRY(http_connection) link; /* the one that was quiet longest is first */
	struct http_server     *server;
	struct http_post       *post;    /* the request that is being served; NULL: none */
	struct loop_source      source;  /* for the peer's end */
	bool                    in_request, cut;
	bool                    ended;   /* the peer has shut down its sending side */
	int64_t                 until_ms; /* the deadline; 0: none */
	struct sockaddr_storage peer;
};

struct http_server {
	struct mcp        *mcp;
	struct MHD_Daemon *daemon;
	struct admission   admission;
	char               url[300];    /* for messages to people */
	struct loop_source source;      /* libmicrohttpd's epoll */
	struct loop_timer  timer, tick; /* when libmicrohttpd wants to be called; checks the deadlines */
	TAILQ_HEAD(http_connection_list, http_connection) connections;
	TAILQ_HEAD(, http_post)       posts;
	struct cells       cells;
	struct ended       ended;
	size_t             n_connections;
	size_t             bodies;      /* bytes of those that are being received */
	bool               resumed;     /* a connection was resumed since libmicrohttpd was last called */
	bool               drains;      /* refuses new messages, and ends the loop when the last answer was sent */
	struct loop_timer  drained;     /* the deadline of that */
};

/* Calls libmicrohttpd in the next turn of the loop, as when a connection was resumed. */
static inline void http_server_soon(struct http_server *s)
{
	s->resumed = true;
	loop_timer_set(&s->mcp->loop, &s->timer, 0);
}

/* Refuses settings with which serving would not be safe; then listens. */
must_use int http_open(struct http_server *ret, struct mcp *m, struct err *e);
/*
 * Ends the server gracefully: calls under way are answered, new ones get 503, as does /healthz; then m->ends is set. Calls that
 * are left after ms fail with an error. A second call, or ms of 0, ends the loop at once.
 */
void         http_drain(struct http_server *s, uint64_t ms);
/* Ends every call and every connection. */
void         http_close(struct http_server *s);
