/* one_run.h - carries out one request and reports its end: shared by brig run, exec, check, and brig session open, run and exec */
#pragma once
#include "run_client.h"

/* Prints the result, and returns brig's exit status. */
typedef int tell_fn(const struct run_client *c);

/* A command whose arguments are options, the session if it has one, and what to run. */
struct one_run_way {
	enum request_by by;
	const char     *line, *what; /* the usage line; what the command does */
	int           (*take)(struct request *, char **words, int n, struct err *);
	tell_fn        *tell;
};

/* Returns brig's exit status, as all functions below. */
int one_run_main(int argc, char **argv, const struct one_run_way *way);

/* Connects, drops privilege, carries the request out, and calls tell(). */
int one_run(struct request *r, tell_fn *tell);

/* Calls tell() for a request that was never sent. */
int one_run_failure(struct request *r, const struct err *why, tell_fn *tell);

/* For a command line that cannot be understood: STATUS_USAGE. */
int one_run_complain(const char *command, const struct err *e);
