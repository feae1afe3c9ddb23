/*
 * http_daemon.h - libmicrohttpd in the caller's loop, and the connections of its clients.
 *
 * libmicrohttpd reads and writes, in the only thread: its epoll descriptor is a source of the loop. A connection that
 * passes its deadline is closed, so that slow senders cannot take all the places. When all places are taken, the
 * connection that was quiet longest is closed. An address gets at most half of the places, except on loopback, where
 * all clients have one, as behind a proxy.
 */
#pragma once
#include "loop.h"

#include <microhttpd.h>
#include <sys/socket.h>

/*
 * The loop watches the socket as well: libmicrohttpd does not see that a peer has closed while its request is being
 * worked on, or after half a request.
 */
struct http_connection {
	TAILQ_ENTRY(http_connection) link; /* the one that was quiet longest is first */
	struct http_daemon     *daemon;
	void                   *request; /* that is being served, of the owner; NULL: none */
	struct loop_source      source;  /* for the peer's end */
	bool                    in_request, cut; /* cut: shut down, and not yet closed by libmicrohttpd */
	bool                    ended;   /* the peer has shut down its sending side */
	int64_t                 until_ms; /* the deadline; 0: none */
	struct sockaddr_storage peer;
};

struct http_events {
	MHD_AccessHandlerCallback    request;
	MHD_RequestCompletedCallback completed;  /* this and those below may be NULL */
	void (*peer_ended)(void *request);       /* of the one that is being served */
	void (*refused)(void *owner, const char *why); /* a connection was closed: "connections", "slow" */
	void (*tick)(void *owner);               /* once in a second */
};

struct http_daemon {
	struct loop              *loop;
	struct MHD_Daemon        *mhd;
	const struct http_events *events;
	void                     *owner;
	size_t                    connections_max, n_connections;
	int64_t                   first_ms;    /* the time for a first request */
	struct loop_source        source;      /* libmicrohttpd's epoll */
	struct loop_timer         timer, tick; /* when libmicrohttpd wants to be called; checks the deadlines */
	TAILQ_HEAD(http_connection_list, http_connection) connections;
	bool                      resumed;     /* a connection was resumed since libmicrohttpd was last called */
};

/*
 * The caller sets loop, events, owner, connections_max and first_ms. Takes listener over unless d->mhd is NULL. memory:
 * of one connection.
 */
must_use int http_daemon_open(struct http_daemon *d, int listener, size_t memory, struct err *e);
/* No connection may be suspended: libmicrohttpd would abort the process. */
void         http_daemon_close(struct http_daemon *d);

/* Calls libmicrohttpd in the next iteration of the loop, as when a connection was resumed. */
void         http_daemon_run_soon(struct http_daemon *d);

struct http_connection *http_connection_of(struct MHD_Connection *connection); /* NULL: memory was short */
/* Sets the deadline; ms 0: no limit. linger: the time is not cut when the peer has shut down its sending side. */
void         http_connection_set_deadline(struct http_connection *c, bool in_request, int64_t ms, bool linger);

/* "name:port", "[::1]:port": the name, without brackets. false: it is neither. */
must_use bool http_parse_authority_host(const char *text, char name[256]);
