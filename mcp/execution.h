/*
 * execution.h - one run of a program: asked for, its pipes read, its record taken.
 *
 * Driven by the loop. It lives as long as somebody attends it or it was kept
 * (executions.h); nobody there means that it is cancelled, and freed once
 * brigd has said that everything of it is gone. A cancel that comes before
 * the run has started is remembered, and sent as soon as it has.
 *
 * A call in a session is the same thing. It waits for its turn there first, and
 * is interrupted before it is cancelled: that keeps its interpreter, with what
 * earlier calls have left there.
 */
#pragma once
#include "launcher.h"
#include "run_tools.h"
#include "stream.h"
#include "turn.h"

enum { EXECUTION_TAIL = 16 * 1024 };

enum execution_state {
	EXECUTION_WAITS, /* for brigd, or for a free place */
	EXECUTION_RUNS,
	EXECUTION_ENDED,
};

struct execution;

/* Who wants to know. Leaves by itself; may leave and answer inside of ended(). */
struct attendant {
	void                   (*ended)(void *owner, struct execution *x);
	/* A program waits for a person. true: its client was asked, or the call has ended with the question. NULL, or false: it cannot be. */
	bool                   (*asks)(void *owner, struct execution *x);
	void                    *owner;
	TAILQ_ENTRY(attendant)   link;
};

struct execution_pipe {
	struct loop_source source;
	struct loop_timer  rest;   /* until it is read again */
	struct stream      stream;
	struct execution  *execution;
	char               tail[EXECUTION_TAIL];
};

/* How the answer is to look; of the call that started it, for those that continue it. */
struct answer_wish {
	bool     as_text, echo, capture, detail; /* detail: of JSON, all of it */
	uint64_t timeout_ms; /* the wall time that it has */
	uint64_t memory_bytes;
	json_t  *warnings;   /* owned; a list of texts, or NULL */
};

struct execution {
	TAILQ_ENTRY(execution)  link;
	struct mcp             *mcp;
	enum execution_state    state;
	struct question         question;
	json_t                 *message;
	char                   *profile;
	int                     fd[2]; /* for brigd: the sealed text; the socket for its files, or -1 */
	char                    id[RUN_ID_LEN + 1];     /* of the run; "": it has not started */
	char                    handle[RUN_ID_LEN + 1]; /* "": nobody was told one */
	char                    principal[64];
	bool                    cancelled, is_report;
	struct execution_pipe   out, err, report;
	struct loop_source      input;
	char                   *input_text;
	size_t                  input_at, input_len;
	char                    limit[48]; /* the one that ends it, as in a profile; "": none does */
	uint64_t                limit_value;
	json_t                 *record;    /* with the program's report in it, and our figures; NULL: see failure */
	json_t                 *said;      /* the report itself; NULL: there was none that could be believed */
	size_t                  said_bytes; /* of memory that it takes, about */
	char                    exec_error[24];
	struct failure          failure;
	int64_t                 asked_ms, ended_ms;
	struct run_tools        tools;     /* zero: it has none */
	struct turn             turn;      /* in a session */
	struct transfer         transfer;  /* else: of its files, which are put before it runs */
	const char             *stopped;   /* in a session: it was interrupted, and is cancelled for this reason if it does not end; NULL: it was not */
	struct loop_timer       patience;  /* of that */
	struct loop_timer       asks;      /* a person is to be asked: not in the middle of something else */
	char                    round[33]; /* of the question that a client holds as a result (2026-07-28); "": none does */
	json_t                 *round_of;  /* the params of the call that was answered so */
	bool                    is_lent;   /* its handle was given out with a question, and to nobody else */
	TAILQ_HEAD(, attendant) attendants;
	struct answer_wish      wish;
};

/* All of one brig-mcp; which of them are kept, and for how long, is executions.h. */
struct executions {
	struct mcp             *mcp;
	TAILQ_HEAD(, execution) all;   /* in the order in which they were asked for */
	struct loop_timer       stale; /* when what is kept is looked through: as soon as one has ended, and when the oldest result is to be forgotten */
};

/* What is to be run. All is copied but the message and the files, which are taken over. */
struct execution_order {
	json_t     *message; /* op run, without a tag */
	const char *code;
	size_t      code_len;
	const char *input; /* NULL: none, and the message does not ask for it */
	size_t      input_len;
	const char *principal;
	struct named_session *session; /* it is a call in this one; NULL: it has a jail of its own */
	uint64_t    patience_ms; /* how long it waits for its turn there */
	char       *files;     /* both lists of what is put before it runs (session_files.h), taken over; NULL: none */
	size_t      files_len;
};

/* Asks at once. NULL with *e: it could not be; brigd's refusals come later. */
must_use struct execution *execution_start(struct mcp *m, const struct execution_order *order, struct err *e);

void execution_attend(struct execution *x, struct attendant *a);
/* The last one who leaves what was not kept ends it. */
void execution_leave(struct execution *x, struct attendant *a);
void execution_cancel(struct execution *x, const char *reason);

/* The bytes that the last line of its output has so far, stderr if there is no stdout; "" without any. Hostile. */
const char *execution_last_line(const struct execution *x, size_t *len);
