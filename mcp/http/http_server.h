/*
 * http_server.h - Streamable HTTP over one listening socket: connections, their limits, and what is not MCP.
 *
 * libmicrohttpd reads and writes, in the one thread there is: its epoll
 * descriptor is a source of our loop. Who has not said what he wants within a
 * while is cut off, so that slow senders cannot hold all the places; when all
 * are taken the one that has kept silent longest makes room.
 */
#pragma once
#include "http_admission.h"
#include "http_cells.h"
#include "mcp.h"

#include <sys/socket.h>

struct MHD_Daemon;
struct http_post;

/* Watched by ourselves, too: libmicrohttpd does not see the end of a peer while somebody works for it, nor behind half a request. */
struct http_connection {
	TAILQ_ENTRY(http_connection) link; /* who was quiet longest first */
	struct http_server     *server;
	struct http_post       *post;    /* the request that is being served; NULL: none */
	struct loop_source      source;  /* for the peer's end */
	bool                    in_request, cut;
	bool                    ended;   /* the peer sends nothing more */
	int64_t                 until_ms; /* 0: for ever */
	struct sockaddr_storage peer;
};

struct http_server {
	struct mcp        *mcp;
	struct MHD_Daemon *daemon;
	struct admission   admission;
	char               principal[64];
	char               url[300];    /* to be told to people */
	struct loop_source source;      /* libmicrohttpd's epoll */
	struct loop_timer  timer, tick; /* when it wants to be called; deadlines */
	TAILQ_HEAD(http_connection_list, http_connection) connections;
	TAILQ_HEAD(, http_post)       posts;
	struct cells       cells;
	size_t             n_connections;
	size_t             bodies;      /* bytes of those that are being received */
	bool               resumed;     /* a connection, since libmicrohttpd was last called */
	bool               drains;      /* takes no message any more, and ends the loop when the last answer was sent */
	struct loop_timer  drained;     /* how long that may take */
};

/* Something is to be done for a connection, as one that was resumed: as soon as the loop turns. */
static inline void http_server_soon(struct http_server *s)
{
	s->resumed = true;
	loop_timer_set(&s->mcp->loop, &s->timer, 0);
}

/* Reads the settings, decides whether serving would be safe, listens. */
must_use int http_open(struct http_server *ret, struct mcp *m, struct err *e);
/*
 * The end, in a while: calls that are worked on are answered, others refused with 503, as is /healthz; then m->ends is set.
 * After ms the calls that are left are told that the server stops. Once more: at once.
 */
void         http_drain(struct http_server *s, uint64_t ms);
/* Ends every call and every connection. */
void         http_close(struct http_server *s);
