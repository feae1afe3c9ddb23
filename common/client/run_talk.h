/*
 * run_talk.h - passes brigd's messages about a run to callbacks, and makes the request that ends the run.
 *
 * brig run has one run on its connection, brig-mcp all of its runs; both tell the messages apart with this.
 */
#pragma once
#include "datagram.h"

enum run_stream { RUN_STDOUT, RUN_STDERR, RUN_RESULT, RUN_STDIN, RUN_TOOLS, RUN_STREAMS };

struct run_start {
	const char *run;
	uint64_t    output_bytes;    /* to keep of stdout, and as many of stderr */
	int         fd[RUN_STREAMS]; /* non-blocking; -1: there is none. Those that started() does not take (fd_take()) are closed */
};

/* Each callback may free its owner. NULL: the caller does not need it. */
struct run_talk {
	void (*waiting)(void *owner, const char *run, const char *why);
	void (*opened)(void *owner, const json_t *event); /* of a session */
	void (*started)(void *owner, struct run_start *start);
	void (*limit)(void *owner, const char *name, uint64_t value); /* the limit that ends the run */
	void (*ended)(void *owner, const json_t *event);
	void (*refused)(void *owner, const json_t *answer); /* the run was refused; after its start: a cancel was, which came too late */
};

void run_talk_handle(const struct run_talk *to, void *owner, struct datagram *d);
/* Waits for a datagram and handles it. */
must_use enum datagram_answer run_talk_receive(const struct run_talk *to, void *owner, int sock, struct err *e);

/* The request cancel. reason: one of the protocol's, or NULL. A new reference; NULL when run is not UTF-8. */
json_t *run_talk_cancel(const char *run, const char *reason);
