/*
 * launcher.h - what the process that builds a cell, watches it and takes it down says to others.
 *
 * Of a private run: a launcher, forked by run_start(), in a session of its own so
 * that Ctrl-C reaches only the client. Of a service: the supervisor of the profile,
 * for each of its cells, ahead of any order. It talks over one socket to the process
 * that reads the streams: see struct launch_word.
 */
#pragma once
#include "group.h"
#include "net.h"
#include "outer.h"
#include "run.h"
#include "slot.h"
#include "store.h"

enum launch_kind {
	LAUNCH_SLOT,    /* number: whoever survives knows what to clean */
	LAUNCH_READY,   /* to who gives orders: the cell waits for one; with a ticket when it is warm */
	LAUNCH_TAKEN,   /* to who gave the ticket on: it was used */
	LAUNCH_STARTED, /* with the streams */
	LAUNCH_LIMIT,   /* number, value: this limit (enum limit_id) ends the run, ENDED follows */
	LAUNCH_ENDED,   /* end */
};

struct launch_word {
	enum launch_kind kind;
	uint32_t         number;
	uint64_t         value;
	struct run_end   end;
};

/* From the client. */
struct launch_cancel {
	enum exit_reason reason;
};

/*
 * A warm cell that waits for its order can be reached without who made it: these descriptors come with READY, in this
 * order. The streams are the ends of whoever uses the ticket, as in pipes.h; those that a run did not ask for are closed
 * by him. Over TICKET_LAUNCHER goes one struct launch_order without descriptors, then struct launch_cancel; the launcher's
 * words come back over it, but for STARTED. The order's bytes: letter.h.
 */
enum { TICKET_LAUNCHER, TICKET_ORDERS, TICKET_LETTER, TICKET_STDOUT, TICKET_STDERR, TICKET_STDIN, TICKET_RESULT, TICKET_FDS };

struct watch;

/*
 * From the keeper to a cell of a service, once, with descriptors: the socket to the client, the words, the
 * text of the program if there is one.
 */
struct launch_order {
	struct limits limits;
	struct words  words; /* fd: as received */
	uint32_t      code_len;
	uint32_t      stdin_pipe, result_pipe, warm; /* 0 or 1 */
	double        asked; /* CLOCK_MONOTONIC ms */
};

/* The streams go to the client, and are closed here. */
void launcher_say_started(struct watch *w);
void launcher_say_limit(const struct watch *w, enum limit_id limit);
void launcher_say_ready(struct watch *w);
/* To who keeps the launcher, if he has not heard it. */
void launcher_say_taken(struct watch *w);

/* With a cell of its own from beginning to end. */
_Noreturn void launcher_main(const struct run_order *order, int sock, const struct timespec *asked);
