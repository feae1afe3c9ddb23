/*
 * outcome.h - what is reported about one call of execute_code, before it is made JSON or text.
 *
 * Its texts that come from the jail are clean (clean.h) and bounded. record, result and findings are bounded, but
 * their texts are as the jail has sent them.
 */
#pragma once
#include "excerpt.h"
#include "execution.h"
#include "images.h"

struct outcome_stream {
	char    *text; /* clean; owned; "" when nothing was captured */
	size_t   len;
	char    *tail; /* owned; the end of the output, if more was written than was kept; NULL: text is all */
	size_t   tail_len;
	uint64_t bytes;
	char     file[48]; /* in the session: all that was kept; "": there is no such file */
	bool     is_cut; /* true also if only JSON has no room for all that was kept */
};

struct outcome {
	char          execution_id[RUN_ID_LEN + 1]; /* "": nothing was run */
	char          exit_reason[24];              /* of exit.def, or "running" */
	char          error[1200]; /* one sentence; "": no error */
	char          hint[400];   /* advice; "": none */
	bool          is_queued;   /* it is "running" and has not begun */
	/* the tool has failed, not the program: nothing was run, or it is not known how the run ended */
	bool          is_failure;
	json_t       *record;      /* owned; NULL: none */
	json_t       *result;      /* as JSON; owned; images are replaced by words */
	struct images gallery;     /* pictures; its content may be empty */
	json_t       *displays;    /* clean texts of what the program showed, in order; may be empty */
	json_t       *findings;    /* the report of a check that refused the program; or NULL */
	json_t       *warnings;    /* about the arguments; or NULL */
	double        seconds;     /* since the request, while it runs; negative: the record has the time */
	uint64_t      timeout_ms;  /* 0: not known */
	char          profile[64];
	char          session[PROTOCOL_NAME_MAX + 1]; /* "": not in a session */
	char          session_state[8]; /* "new", "kept", "reset", "lost"; "": unknown */
	char          written[500]; /* a sentence about the files that the program has written; "" */
	char          session_note[600]; /* a sentence about what the session still has, and has lost; "" */
	struct outcome_stream out, err;
	bool           is_rest;    /* out and err are what came after an earlier answer */
	char          *traceback;  /* owned; clean, without most library frames; NULL: the program raised nothing */
	size_t         traceback_len; /* bytes at the end of err.text that are the traceback, too; 0: it is not there */
};

/* len: of the text, which may lack its end. The excerpt borrows from s. */
struct excerpt outcome_stream_excerpt(const struct outcome_stream *s, size_t len);

void outcome_done(struct outcome *o);
#define scoped_outcome scoped(outcome_done) struct outcome

/* The outcome of an execution that has ended or still runs. */
void outcome_fill(struct outcome *ret, const struct execution *x);
/* An answer has this outcome of a run that goes on: later ones have only what comes after it, except with detail. */
void outcome_mark_reported(struct execution *x);
/* The outcome of a call for which nothing was run. */
void outcome_init_refused(struct outcome *ret, const char *why);

/* The argument of execute_code for a key of brigd's request: "limits.wall_ms" -> "timeout"; NULL: none. */
const char *outcome_argument_of_field(const char *field);
