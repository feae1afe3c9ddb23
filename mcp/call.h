/*
 * call.h - one request that is being worked on, from its message to its answer.
 *
 * Calls run side by side; each ends exactly once: with call_result(),
 * call_failure() or call_cancel(), after which it must not be touched. Who
 * works on longer than a moment sets `cancel` first: it is called when the
 * client does not want the answer any more, and frees the work. Nothing is
 * sent for a cancelled call.
 *
 * The channel is where the call came from (a line of stdio, a POST) and knows
 * how to send; a call outlives its channel never: the channel cancels it.
 */
#pragma once
#include "mcp.h"
#include "revision.h"
#include "rpc.h"

#include <sys/queue.h>

struct channel;

struct channel_ops {
	/* A message that belongs to a call and is not its answer: progress, say. Borrowed. */
	void (*send)(struct channel *ch, struct call *c, const json_t *message);
	/* The answer. The call ends when this returns. http_status: 200, or what the specification says for the error. */
	void (*answer)(struct channel *ch, struct call *c, const json_t *message, int http_status);
	/* The call was cancelled and ends without an answer; may be NULL. */
	void (*gone)(struct channel *ch, struct call *c);
};

struct channel {
	const struct channel_ops *ops;
	enum revision             legacy;  /* what initialize agreed on; REVISION_LEGACY_NEWEST before */
	bool                      elicits; /* its client said then that it asks a person if it is asked to */
	char                      principal[64]; /* whose handles these are: "stdio", or a digest of the bearer token */
	char                      owner[128];    /* whose sessions: "" is the principal; over HTTP with the MCP session, if it has one */
};

struct call {
	TAILQ_ENTRY(call) link;
	struct mcp       *mcp;
	struct channel   *channel;
	void             *channel_data;    /* the channel's own, of this call */
	enum revision     revision;
	json_t           *id;              /* owned */
	char             *method;          /* owned; for messages and metrics */
	json_t           *params;          /* owned; an empty object when there were none */
	json_t           *progress_token;  /* owned; NULL: none wanted */
	double            progress;        /* the last that was told */
	int64_t           progress_at_ms;  /* when; 0: never */
	int64_t           started_ms;
	void            (*cancel)(struct call *c); /* NULL: nothing to stop */
	void             *work;
	struct loop_timer later;           /* of an answer that must not arrive together with progress */
	json_t           *answer;          /* that one; owned */
	int               http_status;
};

/* A request begins. NULL: memory is short. */
must_use struct call *call_begin(struct mcp *m, struct channel *ch, void *channel_data, const struct rpc_message *request,
				 enum revision revision);

/* Takes result over; adds resultType and _meta serverInfo where the revision has them. */
void call_result(struct call *c, json_t *result);
/* With the HTTP status that the code has: 404 for -32601 of a modern request, 400 for -32700, -32600, -32020 and -32022, else 200. */
void call_failure(struct call *c, struct rpc_error *e);
void call_failure_with(struct call *c, struct rpc_error *e, int http_status);
void call_cancel(struct call *c);

/* Only with a token, at most four a second, always more than before. message may be NULL; total <= 0: unknown. */
void call_progress(struct call *c, double progress, double total, const char *message);
/* A notification of any kind that belongs to the call; takes params over. */
void call_notify(struct call *c, const char *method, json_t *params);

/* Of the channel: the call with this id, or NULL; all of them are cancelled. */
struct call *calls_find(struct mcp *m, const struct channel *ch, const json_t *id);
/*
 * For notifications/cancelled: of the channel, else the one legacy call of the
 * same principal that has this id. Legacy HTTP cancels with a second POST.
 */
struct call *calls_find_to_cancel(struct mcp *m, const struct channel *ch, const json_t *id);
void         calls_cancel_all(struct mcp *m, const struct channel *ch);
/* Of every channel: each ends with an error that says why. */
void         calls_fail_all(struct mcp *m, const char *why);
size_t       calls_count(const struct mcp *m, const char *method);
