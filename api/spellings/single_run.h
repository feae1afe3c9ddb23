/*
 * single_run.h - what all interfaces have in common: a request that is one run, and answered when it has ended.
 */
#pragma once
#include "api_run.h"
#include "exchange.h"

/* The answer to a run with a verdict; a new reference. */
typedef json_t *run_encoder(const struct exchange *x, const struct run_outcome *o);

/*
 * Runs the program, and answers with what encode() makes; a fault is answered in its place. p is taken over. session:
 * NULL, or it is used until the end.
 */
void single_run_start(struct exchange *x, struct program *p, struct api_session *session, run_encoder *encode);
/* Answers what cannot be a run with the status of the interface for it. */
void single_run_refuse(struct exchange *x, const struct err *e);

/* stderr, with a sentence of brig's own at its end where a limit ended the program. */
json_t *single_run_stderr_to_json(const struct run_outcome *o);
/* That sentence; "" if no limit did. */
const char *single_run_limit_text(const struct run_outcome *o);
