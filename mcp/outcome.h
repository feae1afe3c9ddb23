/*
 * outcome.h - what is told about one call of execute_code, before it is JSON or text.
 *
 * Everything in it that comes from the jail is clean (clean.h) and bounded.
 */
#pragma once
#include "execution.h"
#include "gallery.h"

struct outcome_stream {
	char    *text; /* clean; owned; "" when nothing was captured */
	size_t   len;
	char    *tail; /* owned; the end of what was written, where more was than was kept; NULL: text is all */
	size_t   tail_len;
	uint64_t bytes;
	bool     is_cut; /* for JSON, which has room for less than was kept, too */
};

struct outcome {
	char           execution_id[RUN_ID_LEN + 1]; /* "": there was no run */
	char           exit_reason[24];              /* of exit.def, or "running" */
	char           error[1200]; /* the sentence; "": all is well */
	char           hint[400];   /* what to change; "" */
	bool           is_failure;  /* of the tool, not of the program: nothing was run, or nobody knows how it ended */
	json_t        *record;      /* borrowed from nobody: a reference; NULL: none */
	json_t        *result;      /* as JSON; images have been replaced by a word */
	struct gallery gallery;     /* of pictures; its content may be empty */
	json_t        *displays;    /* a list of clean texts: what the program showed, in order; may be empty */
	json_t        *findings;    /* of a check that refused the program: its report; or NULL */
	json_t        *warnings;    /* about the arguments; or NULL */
	double         seconds;     /* since it was asked for, of one that runs; negative: see the record */
	uint64_t       timeout_ms;  /* 0: not known */
	char           profile[64];
	char           session[PROTOCOL_NAME_MAX + 1]; /* "": it was a call in none */
	char           session_state[8]; /* "new", "kept", "reset", "lost"; "": nobody knows */
	char           session_note[600]; /* a sentence about what is left in it, and of what was; "" */
	struct outcome_stream out, err;
	char          *traceback;  /* owned; clean, without most frames of libraries; NULL: the program raised nothing */
	size_t         traceback_len; /* bytes at the end of err.text that are that traceback, too; 0: it is not there */
};

void outcome_done(struct outcome *o);
#define scoped_outcome scoped(outcome_done) struct outcome

/* Of one that has ended, or still runs. */
void outcome_of(struct outcome *ret, const struct execution *x);
/* Nothing was run. findings: taken over, may be NULL. */
void outcome_refused(struct outcome *ret, const char *why);

/* Which argument of execute_code a key of brigd's request came from: "limits.wall_ms" -> "timeout"; NULL: none. */
const char *outcome_argument(const char *field);
