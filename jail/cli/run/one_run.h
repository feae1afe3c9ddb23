/* one_run.h - carries out one request and reports its end: shared by brig run, exec, check, and brig session open, run and exec */
#pragma once
#include "run_client.h"

/* Prints the result, and returns brig's exit status. */
typedef int report_fn(const struct run_client *c);

/* A command whose arguments are options, the session if it has one, and what to run. */
struct one_run_way {
	enum request_by by;
	const char     *line, *what; /* the usage line; what the command does */
	int           (*take)(struct request *, char **words, int n, struct err *);
	report_fn      *report;
};

/* Returns brig's exit status, as all functions below. */
int one_run_main(int argc, char **argv, const struct one_run_way *way);

/* Connects, drops privilege, carries the request out, and calls report(). */
int one_run(struct request *r, report_fn *report);

/* Calls report() for a request that was never sent. */
int one_run_failure(struct request *r, const struct err *why, report_fn *report);

/* For a command line that cannot be understood: STATUS_USAGE. */
int one_run_complain(const char *command, const struct err *e);
