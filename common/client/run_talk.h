/*
 * run_talk.h - what brigd says of one run to who asked for it, and the one thing that can be said back.
 *
 * brig run waits for its socket, brig-mcp for all runs of its connection; what they hear is told apart here.
 */
#pragma once
#include "datagram.h"

enum run_stream { RUN_STDOUT, RUN_STDERR, RUN_RESULT, RUN_STDIN, RUN_TOOLS, RUN_STREAMS };

struct run_start {
	const char *run;
	uint64_t    output_bytes;    /* to be kept of stdout, and of stderr */
	int         fd[RUN_STREAMS]; /* -1: there is none. They do not block; what nobody takes (fd_take()) is closed */
};

/* Who listens. Each may free its owner. */
struct run_talk {
	void (*waiting)(void *owner, const char *run, const char *why);
	void (*opened)(void *owner, const json_t *event); /* a session; NULL: none is asked for */
	void (*started)(void *owner, struct run_start *start);
	void (*limit)(void *owner, const char *name, uint64_t value); /* the one that ends it */
	void (*ended)(void *owner, const json_t *event);
	void (*refused)(void *owner, const json_t *answer); /* the run; after its start a cancel, which came too late */
};

void run_talk_hear(const struct run_talk *to, void *owner, struct datagram *d);

/* The request that ends the run. reason: one of the protocol's, or NULL. A new reference; NULL when run is not UTF-8. */
json_t *run_talk_cancel(const char *run, const char *reason);
