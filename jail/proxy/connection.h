/*
 * connection.h - from a program's connect() to its end
 *
 *     which host?     transparent: the address that it connected to; else CONNECT, SOCKS5 or an absolute request says it
 *     look            the program's first bytes: TLS, and for which name; or HTTP, and for which host
 *     dial            resolve, judge every address, connect to one of them
 *     carry           a tunnel; or one request and its reply
 *
 * Through the proxy port a host is dialed before the program is told so and begins to speak; transparent ones
 * speak first. Every way ends in connection_end(), which frees it: what calls that does nothing more.
 */
#pragma once
#include "buffer.h"
#include "deadline.h"
#include "dial.h"
#include "flow.h"
#include "permission.h"
#include "report_line.h"
#include "side.h"

enum via { VIA_ADDRESS, VIA_CONNECT, VIA_SOCKS, VIA_REQUEST };
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
	void (*next)(struct connection *c);      /* a step is done (course.h) */
	void (*try_again)(struct connection *c); /* this address takes too long: the next one */
	void (*wake)(struct connection *c);      /* the run's rate lets more pass again; NULL: nothing is carried */
	enum via           via;
	enum carry         carry;
	bool               is_named, is_dialed, is_told;
	bool               is_left; /* the program said its end, or is gone */
	bool               awaits_reply; /* the program speaks HTTP, and may be answered in it */
	char               host[NET_HOST_MAX];
	uint16_t           port;
	bool               is_address;
	enum net_scheme    scheme; /* ANY until it was looked at */
	struct permission  permission;
	struct buffer      said; /* of the program, not passed on yet */
	struct dial        dial;
	struct flow        up, down; /* of the tunnel */
	struct exchange   *exchange; /* of the request; one piece of memory */
	struct deadline    deadline;
	struct report_line line;
};
LIST_HEAD(connections, connection);

/* fd: accepted, owned from then on. NULL: no memory, and the program was reset. */
must_use struct connection *connection_open(struct run *run, int fd, void (*next)(struct connection *c));

/* The host is known: the first judgement, and then onward. */
void connection_name(struct connection *c, const char *host, uint16_t port, bool is_address, enum net_scheme scheme);
/* A step is done: to the next one. */
void connection_next(struct connection *c);

/* More of what the program says, into said. MOVED, WANT_READ (it is waited for), or its end. */
enum tls_outcome connection_listen(struct connection *c, size_t max);

/* REFUSED with this reason, and the program is told as well as its protocol allows. */
void connection_refuse(struct connection *c, enum net_reason reason);
/* The same, FAILED: it was allowed. */
void connection_fail(struct connection *c, enum net_reason reason);
/* What was written to the program is to arrive: not cut off by what it still says. */
void connection_leave(struct connection *c);
/* All was carried, or both sides have gone. */
void connection_end(struct connection *c, bool is_reset);

struct proxy *connection_proxy(const struct connection *c);
void          connection_want(struct connection *c, uint32_t client, uint32_t server);
/* It is not there yet: ends, FAILED, when the program is gone before. */
void          connection_await_server(struct connection *c, uint32_t events);
/* Of the program's side, once all that it said is passed on: a server that says nothing either is not waited for long. */
void          connection_note_left(struct connection *c);
void          connection_deadline(struct connection *c, enum deadline_kind kind);
