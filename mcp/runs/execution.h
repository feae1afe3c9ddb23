/*
 * execution.h - one run of a program: its request, its pipes, its record; and the handle by which later calls find
 * it.
 *
 * The loop drives it. It lives as long as calls attend it or it is kept. When the last waiter leaves one that is not
 * kept it is cancelled, and freed when brigd has reported that everything of it is gone. A cancel before the run has
 * started is remembered, and sent as soon as it has.
 *
 * A call in a session is an execution, too. It waits there for earlier calls, and is interrupted before it is
 * cancelled: an interrupt keeps the interpreter, with what earlier calls have left in it.
 *
 * A handle is the run's id, or a random id if the run had none yet. It belongs to a principal; other principals
 * cannot find the run. Results of runs that have ended are kept for ten minutes, but at most KEPT_MAX of them and
 * KEPT_BYTES in all: the oldest are dropped first.
 */
#pragma once
#include "run_client.h"
#include "run_tools.h"
#include "server_request.h"
#include "session_use.h"

enum { EXECUTION_TAIL = 16 * 1024, HOST_ASKED_MAX = 262, KEPT_MAX = 64, KEPT_RUNNING_MAX = 256 };
#define KEPT_BYTES (64 * MIB)
#define KEPT_MS    (10 * 60 * 1000)

struct execution;

/*
 * A caller that waits for the end of a run. It must leave by itself (execution_remove_waiter()), and may do so inside
 * of ended().
 */
struct waiter {
	void                   (*ended)(void *owner, struct execution *x); /* NULL: it only keeps the run */
	/*
	 * A program waits for a person's consent. true: the client was asked, or the call has ended with the
	 * question. NULL, or false: the client cannot ask.
	 */
	bool                   (*asks)(void *owner, struct execution *x);
	void                    *owner;
	TAILQ_ENTRY(waiter)   link;
};

/* The form of the answer; set by the call that started the run, and used by calls that continue it. */
struct answer_form {
	bool     as_text, echo, capture, detail; /* detail: JSON with all keys and all output */
	uint64_t timeout_ms; /* the wall time limit of the run */
	uint64_t memory_bytes;
	json_t  *warnings;   /* owned; a list of texts, or NULL */
};

/* A program's question, as a legacy client was sent it (elicitation.h). */
struct elicitation {
	struct client_request request; /* first: a pointer to it is one to the elicitation */
	struct execution     *execution;
	struct call          *call;    /* with which it was sent; NULL: that call has ended */
	uint64_t              number;  /* of the question */
};

struct execution {
	TAILQ_ENTRY(execution)  link;
	struct mcp             *mcp;
	struct run_client       run;       /* waits for brigd, for a free jail, or for earlier calls in its session */
	char                    tail[2][EXECUTION_TAIL]; /* of stdout and stderr */
	json_t                 *message;
	char                   *profile;
	/* for brigd: the program text, sealed; folders of --ro; the socket for its files; else -1 */
	int                     fd[PROTOCOL_FDS_MAX];
	size_t                  fds;
	char                    handle[RUN_ID_LEN + 1]; /* "": it has none, and is not kept */
	char                    principal[64];
	bool                    is_report;
	char                   *input; /* owned */
	/* with the program's report, and the figures of brig-mcp; NULL: see failure */
	json_t                 *record;
	json_t                 *program_report; /* the report itself; NULL: there was none, or it was invalid */
	size_t                  program_report_bytes; /* memory that it takes, estimated */
	char                    exec_error[24];
	struct failure          failure;
	int64_t                 asked_ms, ended_ms;
	struct run_tools        tools;     /* zero: the run has no tools */
	struct queued_call      queued;    /* in a session */
	struct transfer         transfer;  /* without a session: puts its files before it runs */
	/* asks a person in the next iteration of the loop, not inside of another callback */
	struct loop_timer       question_timer;
	struct elicitation      elicitation; /* one at a time */
	/* requestState of the questions that were sent as a result (2026-07-28); "": none */
	char                    round[33];
	json_t                 *round_of;  /* the params of the call that had this result; owned */
	bool                    is_lent;   /* its handle is for these questions only: the client does not know it */
	TAILQ_HEAD(, waiter) waiters;
	char                    host[HOST_ASKED_MAX]; /* about which a person is being asked (ask_hosts.h); "": none */
	unsigned                hosts_asked;
	struct answer_form      answer_form;
};

/* All executions of a brig-mcp. */
struct executions {
	struct mcp             *mcp;
	TAILQ_HEAD(, execution) all;   /* in the order in which they were asked for */
	/* forgets results: runs out when an execution ends, and when the oldest result is too old */
	struct loop_timer       stale;
};

/* What is to be run. All of it is copied, except message and files, which are taken over. */
struct execution_request {
	json_t     *message; /* op run, without a tag */
	const char *code;
	size_t      code_len;
	const char *input; /* stdin; NULL: none, and the message does not ask for it */
	size_t      input_len;
	const char *principal;
	struct named_session *session; /* it is a call in this session; NULL: it gets a jail of its own */
	uint64_t    timeout_ms; /* how long it waits for earlier calls in the session */
	char       *files;      /* what is put before it runs, see session_files_start(); taken over; NULL: none */
	size_t      files_len;
};

struct executions *executions_create(struct mcp *m);
/*
 * Frees all of them. Runs are not cancelled: brigd ends them when the connection is closed, so brigd_link_destroy()
 * must follow.
 */
void executions_destroy(struct executions *all);

/* Asks brigd, or waits in the session. NULL with *e: that was not possible; a refusal of brigd comes later. */
must_use struct execution *execution_start(struct mcp *m, const struct execution_request *request, struct err *e);

void execution_add_waiter(struct execution *x, struct waiter *a);
/* If this was the last waiter and the execution is not kept, it is cancelled, or freed if it has ended. */
void execution_remove_waiter(struct execution *x, struct waiter *a);
void execution_request_cancel(struct execution *x, const char *reason);

/*
 * The last line of its stdout so far, even if it is incomplete; of stderr if stdout has none; or "".
 * Hostile.
 */
const char *execution_last_line(const struct execution *x, size_t *len);

/* NULL: that principal has no such run. */
struct execution *execution_find(struct mcp *m, const char *principal, const char *handle);
/* Gives it a handle if it has none. false: too many runs with a handle have not ended. */
must_use bool execution_give_handle(struct execution *x);
