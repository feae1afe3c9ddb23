/*
 * call.h - one request under way, from its message to its answer.
 *
 * Calls run side by side. Each ends exactly once, with call_answer_result(), call_answer_failure() or
 * call_cancel_and_free(), after which it must not be touched. A function that does not answer at once sets `cancel`
 * first: it is called when the client does not want the answer any more, and frees the work. Nothing is sent for a
 * cancelled call.
 *
 * The channel is where the call came from (a line of stdio, a POST), and sends its messages. A channel cancels its
 * calls before it is freed.
 */
#pragma once
#include "linked_list.h"
#include "mcp.h"
#include "revision.h"
#include "rpc.h"

struct channel;

struct channel_ops {
	/* A message of a call that is not its answer, as progress. Borrowed. */
	void (*send)(struct channel *ch, struct call *c, const json_t *message);
	/*
	 * The answer, borrowed; the call ends when this returns. http_status: 200, or the one that the specification
	 * wants for the error.
	 */
	void (*answer)(struct channel *ch, struct call *c, const json_t *message, int http_status);
	/* The call was cancelled and ends without an answer; may be NULL. */
	void (*gone)(struct channel *ch, struct call *c);
};

struct channel {
	const struct channel_ops *ops;
	enum revision             legacy;  /* the revision that initialize agreed on; before, REVISION_LEGACY_NEWEST */
	bool                      elicits; /* its client declared in initialize that it can ask a person */
	bool                      has_roots; /* it declared there that it has folders to show, over stdio */
	/* owner of handles of runs: "stdio", or a digest of the bearer token */
	char                      principal[64];
	/* owner of sessions; "": the principal; over HTTP it has the MCP session, if there is one */
	char                      owner[128];
	/* other clients may have the same owner, and choose the same names for sessions */
	bool                      shares;
	/*
	 * Of a legacy POST: its MCP session, "" if it names none; borrowed. Such a client cancels a call with another
	 * POST, which reaches the calls of its own session alone: clients number their calls alike. NULL: calls are
	 * cancelled by their own channel only.
	 */
	const char               *session;
};

struct call {
	TAILQ_ENTRY(call) link;
	struct mcp       *mcp;
	struct channel   *channel;
	void             *channel_data;    /* for the channel */
	enum revision     revision;
	json_t           *id;              /* owned */
	char             *method;          /* owned; for messages and metrics */
	json_t           *params;          /* owned; an empty object when there were none */
	json_t           *progress_token;  /* owned; NULL: none wanted */
	double            progress;        /* the last one that was sent */
	int64_t           progress_at_ms;  /* when it was sent; 0: never */
	int64_t           started_ms;
	void            (*cancel)(struct call *c); /* NULL: nothing to stop */
	void             *work;
	struct loop_timer later;           /* delays the answer, which must not arrive together with progress */
	json_t           *answer;          /* the delayed answer; owned */
	int               http_status;
};

/* A request begins. NULL: memory is short. */
must_use struct call *call_create(struct mcp *m, struct channel *ch, void *channel_data,
				 const struct rpc_message *request, enum revision revision);

/* Takes result over; adds resultType and _meta serverInfo where the revision has them. */
void call_answer_result(struct call *c, json_t *result);
/*
 * Takes e->data over. The HTTP status follows from the code: 404 for -32601 of a modern request, 400 for -32700,
 * -32600, -32020 and -32022, else 200.
 */
void call_answer_failure(struct call *c, struct rpc_error *e);
void call_answer_failure_status(struct call *c, struct rpc_error *e, int http_status);
void call_cancel_and_free(struct call *c);

/*
 * Sent only if the request has a progressToken, at most four times a second, and only if progress has grown. message
 * may be NULL; total <= 0: unknown.
 */
void call_send_progress(struct call *c, double progress, double total, const char *message);
/* Sends a notification that belongs to the call; takes params over. */
void call_notify(struct call *c, const char *method, json_t *params);

/* The call of the channel with this id, or NULL. */
struct call *calls_find_by_id(struct mcp *m, const struct channel *ch, const json_t *id);
/*
 * For notifications/cancelled: the call of the channel with this id, else the one legacy call with it of the same
 * principal and MCP session. Legacy HTTP cancels with a second POST.
 */
struct call *calls_find_to_cancel(struct mcp *m, const struct channel *ch, const json_t *id);
void         calls_cancel_all(struct mcp *m, const struct channel *ch);
/* Ends the calls of all channels with the reason as error. */
void         calls_fail_all(struct mcp *m, const char *why);
size_t       calls_count_of_method(const struct mcp *m, const char *method);
