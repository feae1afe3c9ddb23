/*
 * rpc_client.h - the asking side of JSON-RPC over two pipes: requests with ids of ours, and the one answer of each.
 *
 * What comes is hostile. A line that is no message is passed over, as programs
 * print what they please; so is an answer to nothing, a second one and a late
 * one. A line longer than RPC_MAX cannot tell whose it was: all that wait are
 * told. Requests of the other side but ping are refused.
 *
 * An owner that is told may ask, and forget any other request; the client
 * itself must outlive the call of it.
 */
#pragma once
#include "lines.h"
#include "loop.h"
#include "output.h"
#include "rpc.h"

struct rpc_client;

enum rpc_end { RPC_END_RESULT, RPC_END_ERROR, RPC_END_TIMEOUT, RPC_END_LIMIT, RPC_END_LOST };

/* One request. Its owner fills the first three; it is forgotten when it is answered. */
struct rpc_ask {
	/* said: the result or the error object, borrowed; NULL of the other ends, of which `why` is a sentence. */
	void                (*answered)(void *owner, enum rpc_end end, const json_t *said, const char *why);
	void                (*progress)(void *owner, const json_t *params); /* NULL: not wanted */
	void                 *owner;
	struct rpc_client    *client; /* NULL: not asked */
	int64_t               id;
	struct loop_timer     late;
	bool                  slow;   /* it may take as long as it likes: too much of something else is not its fault */
	TAILQ_ENTRY(rpc_ask)  link;
};

struct rpc_client_events {
	void (*notified)(void *owner, const struct rpc_message *message);
	void (*noise)(void *owner, const char *bytes, size_t len); /* a line that is no message */
	void (*ended)(void *owner);                                /* no more bytes come; may not close the client */
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

/* Takes both descriptors over, which must not wait. c must not move. */
must_use int rpc_client_open(struct rpc_client *c, struct loop *loop, int in, int out, const struct rpc_client_events *events, void *owner,
			     struct err *e);
/* Whatever is asked is told that it is lost. May be called twice, and on one that was never open but is zero. */
void         rpc_client_close(struct rpc_client *c, const char *why);
/* Takes what is there to be read, without waiting for more: the other side has ended. */
void         rpc_client_drain(struct rpc_client *c);
/* The other side hears the end of its input. */
void         rpc_client_hang_up(struct rpc_client *c);

/* Takes params over. ms: until it is given up. false: so much waits to be read there that no more is sent. */
must_use bool rpc_client_ask(struct rpc_client *c, struct rpc_ask *a, const char *method, json_t *params, uint64_t ms);
/* The answer is not wanted any more. cancel: the other side is told. May be called on one that was not asked. */
void          rpc_ask_forget(struct rpc_ask *a, bool cancel);
void          rpc_client_tell(struct rpc_client *c, const char *method, json_t *params); /* a notification; takes params over */
void          rpc_client_say(struct rpc_client *c, char *line, size_t len);              /* any line; takes it over */
