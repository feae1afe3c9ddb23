/*
 * submission.h - Judge0's submissions: runs whose results are asked for later, by a token.
 *
 * A submission belongs to the client that made it; others cannot find it. Results are kept for ten minutes, at most
 * SUBMISSIONS_MAX of them and SUBMISSIONS_BYTES in all: the oldest are dropped first.
 */
#pragma once
#include "api_run.h"

enum { SUBMISSIONS_MAX = 4096, SUBMISSION_KEPT_MS = 10 * 60 * 1000 };
#define SUBMISSIONS_BYTES (256 * MIB)

struct submission {
	TAILQ_ENTRY(submission) link;
	struct submissions     *all;
	struct api_token       *owner;
	char                    token[RUN_ID_LEN + 1];
	json_t                 *asked;   /* the request; owned */
	char                   *expected, *source, *input; /* decoded; owned; expected and input may be NULL */
	size_t                  expected_len, source_len, input_len;
	struct api_run         *run;     /* NULL: it is over */
	struct run_outcome      outcome; /* valid when it is over; its out and err are owned here */
	char                   *out, *err;
	int64_t                 created_ms, finished_ms; /* since 1970 */
	int64_t                 ended_ms;                /* of loop_now_ms() */
	/* Called once, when it is over; NULL: nobody waits. */
	void                  (*ended)(void *waiter, struct submission *s);
	void                   *waiter;
};

struct submissions *submissions_create(struct api *a);
void                submissions_destroy(struct submissions *all); /* before api_close(); NULL: nothing */

/* Without a run: the caller starts or deletes it. NULL: memory is short, or runs have all places. */
struct submission *submission_create(struct submissions *all, struct api_token *owner);
/* Takes p over. false: memory is short. */
must_use bool      submission_start(struct submission *s, struct program *p);
struct submission *submission_find(struct submissions *all, const struct api_token *owner, const char *token);
/* Cancels it if it is not over. */
void               submission_delete(struct submission *s);
