/*
 * rpc_client.h - a JSON-RPC client over two pipes: it sends requests, and reports one answer for each.
 *
 * The server's output is hostile. A line that is not a message is reported as noise, as programs print what they please to
 * stdout. An answer to no open request, as a second or a late one, is ignored. It is not known which request a line longer than
 * RPC_MAX answers, so all but the slow ones end with RPC_END_LIMIT. Requests of the server, except ping, are refused.
 *
 * A callback may make requests and forget any others. The client must stay in memory until the callback returns.
 */
#pragma once
#include "lines.h"
#include "loop.h"
#include "output.h"
#include "rpc.h"

struct rpc_client;

/* LIMIT: its answer cannot be taken. LOST: the client was closed; nothing else ends a request so. */
enum rpc_end { RPC_END_RESULT, RPC_END_ERROR, RPC_END_TIMEOUT, RPC_END_LIMIT, RPC_END_LOST };

/* One request. Its owner fills the first three; it is forgotten when it is answered. */
struct rpc_ask {
	/* reply: the result or the error object, borrowed. For other ends it is NULL, and why is a sentence. */
	void                (*answered)(void *owner, enum rpc_end end, const json_t *reply, const char *why);
	void                (*progress)(void *owner, const json_t *params); /* NULL: not wanted */
	void                 *owner;
	struct rpc_client    *client; /* NULL: not asked */
	int64_t               id;
	struct loop_timer     late;
	bool                  slow;   /* it stays open for long: it does not end when a line of the server was too long */
	TAILQ_ENTRY(rpc_ask)  link;
};

struct rpc_client_events {
	void (*notified)(void *owner, const struct rpc_message *message);
	void (*noise)(void *owner, const char *bytes, size_t len); /* a line that is not a message */
	void (*ended)(void *owner);                                /* end of file */
};

struct rpc_client {
	struct loop                    *loop;
	const struct rpc_client_events *events;
	void                           *owner;
	struct loop_source              reads, writes;
	struct lines                    lines;
	struct output                   out;
	int64_t                         id;
	bool                            open, ended, writes_wait;
	TAILQ_HEAD(rpc_asks, rpc_ask)   asks;
};

/* Takes both descriptors over; they must be non-blocking. c must not move. */
must_use int rpc_client_open(struct rpc_client *c, struct loop *loop, int in, int out, const struct rpc_client_events *events, void *owner,
			     struct err *e);
/* Every open request ends with RPC_END_LOST. May be called twice, and on a client that is zero and was never opened. */
void         rpc_client_close(struct rpc_client *c, const char *why);
/* Reads what the pipe has, without waiting for more. For a server whose process has ended. */
void         rpc_client_drain(struct rpc_client *c);
/* Closes the client's output, so that the server sees end of file. */
void         rpc_client_hang_up(struct rpc_client *c);

/* Takes params over. ms: the time-out; 0: none. false: the server has left too much unread, and nothing is sent. */
must_use bool rpc_client_send_request(struct rpc_client *c, struct rpc_ask *a, const char *method, json_t *params, uint64_t ms);
/* The answer is not wanted any more: the server gets a notification. May be called on one that was not asked. */
void          rpc_ask_cancel(struct rpc_ask *a);
void          rpc_client_notify(struct rpc_client *c, const char *method, json_t *params); /* a notification; takes params over */
void          rpc_client_send_line(struct rpc_client *c, char *line, size_t len);        /* any line; takes it over */
