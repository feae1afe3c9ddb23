/*
 * proxy_connection.h - one connection of a program, from connect() to its end
 *
 *     which host?     transparent: the name that stands behind the address; at the proxy port: CONNECT, SOCKS5 or an
 *                     absolute request
 *     look            the program's first bytes: TLS, and for which name; or HTTP, and for which host
 *     dial            resolve, judge every address, connect to one of them
 *     carry           a tunnel; or requests and their replies, one after the other
 *
 * A transparent connection is looked at before it is dialed. CONNECT and SOCKS5 are dialed first: the program sends
 * nothing before it reports that the host was reached. Every path ends in connection_close_and_free():
 * a function that may call it, or one of the functions below that lead to it, must not touch the connection afterwards.
 */
#pragma once
#include "buffer.h"
#include "deadline.h"
#include "dial.h"
#include "flow.h"
#include "permission.h"
#include "report_line.h"
#include "request_head.h"
#include "side.h"

enum via { VIA_ADDRESS, VIA_CONNECT, VIA_SOCKS, VIA_REQUEST };
enum reached { /* each has all before it */
	REACHED_NOTHING,
	REACHED_NAME,      /* the report line is open */
	REACHED_SERVER,    /* dialed */
	REACHED_CONFIRMED, /* the program has the reply to CONNECT or SOCKS5 */
};
enum carry {
	CARRY_UNKNOWN,
	CARRY_TUNNEL,
	CARRY_REQUEST, /* plain HTTP */
	CARRY_INSIDE,  /* HTTP inside TLS, which is terminated */
};

struct connection {
	LIST_ENTRY(connection) link;
	struct run *run;
	struct side client, server;
	void (*on_client)(struct connection *c);
	void (*on_server)(struct connection *c);
	void (*next)(struct connection *c);      /* begins the next step (course.h) */
	void (*try_again)(struct connection *c); /* the current address takes too long: tries the next one */
	void (*wake)(struct connection *c);      /* the run's rate allows more bytes again; NULL: nothing is carried */
	enum via           via;
	enum carry         carry;
	enum reached       reached;
	bool               is_half_closed; /* the program has shut down its sending side, or is gone */
	bool               watches_server; /* between two requests: its end of the connection may end, too */
	bool               awaits_reply; /* the program speaks HTTP, so a refusal can be an HTTP reply */
	char               host[NET_HOST_MAX];
	uint16_t           port;
	bool               is_address;
	enum net_scheme    scheme; /* ANY: not known yet */
	struct permission  permission;
	struct buffer      received; /* bytes of the program that were not passed on yet */
	size_t             looked;   /* how many of them connection_has_line() has looked at; each step begins with 0 */
	struct dial        dial;
	struct flow        up, down; /* to the server, to the program */
	size_t             drained;  /* bytes that were read and dropped at the end */
	struct exchange   *exchange; /* owned, one piece of memory; NULL: a tunnel, or no request yet */
	struct deadline    deadline;
	struct deadline    held; /* of an exchange: bytes of its reply wait for more */
	struct report_line line;
};
LIST_HEAD(connections, connection);

/* Takes ownership of fd, an accepted socket. NULL: no memory, and fd was closed with a reset. */
must_use struct connection *proxied_connection_create(struct run *run, int fd, void (*next)(struct connection *c));

/* The host is known: opens the report line, asks the rules for the first time, and refuses or begins the next step. */
void connection_set_host(struct connection *c, const char *host, uint16_t port, bool is_address,
			 enum net_scheme scheme);

/* Reads more bytes of the program into received. WANT_READ, WANT_WRITE: the loop waits for it. FAILED: also when
 * received has max bytes. */
enum tls_outcome connection_read(struct connection *c, size_t max);
/*
 * True: since the last call a line of a request's head ended in received, or the head has its greatest length. Only
 * then it is parsed: a program that sends its head byte by byte must not cost a parse of all of it for each.
 */
bool             connection_has_line(struct connection *c);

/* Reads the head of a request into received. MORE: *result has why no more bytes are there. head is large. */
enum http_outcome connection_read_request(struct connection *c, struct request_head *head, enum tls_outcome *result);

/* Ends with the verdict REFUSED and this reason. The program gets an HTTP or SOCKS5 reply where it can, otherwise a
 * reset. */
void connection_refuse(struct connection *c, enum net_reason reason);
/* The same with the verdict FAILED: the rules allowed it, but it did not succeed. */
void connection_fail(struct connection *c, enum net_reason reason);
/* Ends when the program has had time to read what was written to it: bytes that it still sends must not cause a reset.
 */
void connection_drain(struct connection *c);
/* The next request of the program is to another host: everything but the program's side begins anew. */
void connection_start_over(struct connection *c);
/* Closes both sides and frees c. is_reset: with RST, so that neither peer takes what it has for complete. */
void connection_close_and_free(struct connection *c, bool is_reset);

/* As on_server: a server may stop waiting for a silent client. */
void connection_reset(struct connection *c);

struct proxy *connection_proxy(const struct connection *c);
void          connection_watch_events(struct connection *c, uint32_t client, uint32_t server);
/* Waits for events of a server that is not connected yet. When the program goes away first, the connection ends,
 * FAILED. */
void          connection_await_server(struct connection *c, uint32_t events);
/*
 * Call it when the program's side is ready. If the program has shut down its sending side, and everything that it sent
 * was passed on, a silent server gets only DEADLINE_HALF.
 */
void          connection_note_half_close(struct connection *c);
void          connection_set_deadline(struct connection *c, enum deadline_kind kind);
