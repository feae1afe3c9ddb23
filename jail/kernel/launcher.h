/*
 * launcher.h - the process that builds a cell, watches it and takes it down.
 *
 * Forked by run_start(), in a session of its own so that Ctrl-C reaches only
 * the client; or by the spawner of a service, ahead of any order. Talks over
 * one socket to who reads the streams: see struct launch_word.
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
 * From who gives orders to a launcher that serves, once, with descriptors: the socket to the client, the words, the
 * text of the program if there is one.
 */
struct launch_order {
	struct limits limits;
	struct words  words; /* fd: as received */
	uint32_t      code_len;
	uint32_t      stdin_pipe, result_pipe, warm; /* 0 or 1 */
	double        asked; /* CLOCK_MONOTONIC ms */
};

/* What a launcher that serves is given. All of it is its own. */
struct launcher_post {
	bool             awaited; /* an order comes at once: a cell that fails waits for it, to say why */
	int              control; /* order in; READY, and ENDED without an order, out; its end of file ends the cell */
	struct outer     outer;   /* the namespace that we are in */
	struct slot      slot;    /* as it sees our ids */
	struct group     group;   /* lent */
	struct store_tree rootfs; /* opened where its owner could be seen */
	struct run_order order;   /* without words */
	struct net_place net;
	uint64_t         wall_ms_max; /* the profile's ceiling, for who uses a ticket */
	int              zygote, zygote_pidfd, zygote_up_fd; /* who forks into cells; -1: nobody. As in warm.h */
	bool             zygote_ahead; /* it forks before there is an order */
	bool             zygote_starts; /* it still imports: that may take longer */
};

/* The streams go to the client, and are closed here. */
void launcher_say_started(struct watch *w);
void launcher_say_limit(const struct watch *w, enum limit_id limit);
void launcher_say_ready(struct watch *w);
/* To who keeps the launcher, if he has not heard it. */
void launcher_say_taken(struct watch *w);

/* With a cell of its own from beginning to end. */
_Noreturn void launcher_main(const struct run_order *order, int sock, const struct timespec *asked);
/* In a namespace and with ids and groups that somebody else keeps. */
_Noreturn void launcher_serve(const struct launcher_post *post);
