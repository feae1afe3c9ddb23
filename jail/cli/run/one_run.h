/* one_run.h - carries out one request and reports its end: shared by brig run, exec, check, and brig session open, run, exec, put, get and files */
#pragma once
#include "command.h"
#include "foreground_run.h"

/* Prints the result, and returns brig's exit status. */
typedef int report_fn(const struct foreground_run *c);

/* A command whose arguments are options, the session if it has one, and what to run. */
struct one_run_way {
	enum request_by     by;
	struct command_help help;
	int               (*take)(struct request *, char **words, int n, struct err *); /* makes the message */
	report_fn          *report;
	int               (*carry_out)(struct request *, const char *command); /* instead of one_run_connect_and_run(); NULL: that */
};

/* Returns brig's exit status, as all functions below. */
int one_run_main(int argc, char **argv, const struct one_run_way *way);

/* To the service, or to a private brigd; then drops privilege. */
must_use int one_run_connect(struct brigd *server, const struct request *r, struct err *e);

/* Connects, drops privilege, carries the request out, and calls report(). */
int one_run_connect_and_run(struct request *r, report_fn *report);

/* Calls report() for a request that was never sent. */
int one_run_report_failure(struct request *r, const struct err *why, report_fn *report);
