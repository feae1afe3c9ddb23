/* one_run.h - a request is carried out, and told of: what brig run, exec and check have in common, and calls of a session */
#pragma once
#include "run_client.h"

/* Prints what came of it, and returns what brig exits with. */
typedef int tell_fn(const struct run_client *c);

/* A command whose words are options, a session perhaps, and what is to be run. */
struct one_run_way {
	enum request_by by;
	const char     *line, *what; /* how to write it, and what for */
	int           (*take)(struct request *, char **words, int n, struct err *);
	tell_fn        *tell;
};

/* How brig ends. */
int one_run_main(int argc, char **argv, const struct one_run_way *way);

/* Connects, gives up privilege, runs, tells. */
int one_run(struct request *r, tell_fn *tell);

/* No request was sent: why. */
int one_run_failure(struct request *r, const struct err *why, tell_fn *tell);

/* Of a command line that makes no sense. */
int one_run_complain(const char *command, const struct err *e);
