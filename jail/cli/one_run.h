/* one_run.h - a request is carried out, and told of: what brig run, exec and check have in common */
#pragma once
#include "run_client.h"

/* Prints what came of it, and returns what brig exits with. */
typedef int tell_fn(const struct run_client *c);

/* Connects, gives up privilege, runs, tells. */
int one_run(struct request *r, tell_fn *tell);

/* No request was sent: why. */
int one_run_failure(struct request *r, const struct err *why, tell_fn *tell);

/* Of a command line that makes no sense. */
int one_run_complain(const char *command, const struct err *e);
