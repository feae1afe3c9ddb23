/*
 * launch.h - what the process that watches a run says of it, and is told.
 *
 * Of a private run that is a launcher, of a service the supervisor of the profile,
 * ahead of any order. It talks over one socket to the process that reads the
 * streams: see struct launch_message.
 */
#pragma once
#include "exec_args.h"
#include "limits.h"
#include "run_end.h"

enum launch_kind {
	LAUNCH_SLOT,    /* number: whoever survives knows what to clean */
	LAUNCH_READY,   /* to the keeper: the cell waits for an order; with a ticket when it is warm, and again without one when the ticket was closed unused. number: how many cells there were in its place before */
	LAUNCH_TAKEN,   /* to the keeper: a run came with the ticket, and is not over after LAUNCH_TAKEN_MS. The keeper does not hear of shorter ones */
	LAUNCH_STARTED, /* with the streams */
	LAUNCH_SESSION, /* of a session: number: how many of its processes were ended because it had no memory; value: whether it is frozen; of end: layers, missing, missing_why, rootfs_digest. Once when it begins, and each time */
	LAUNCH_LIMIT,   /* number, value: this limit (enum limit_id) ends the run, ENDED follows */
	LAUNCH_ENDED,   /* end */
};

struct launch_message {
	enum launch_kind kind;
	uint32_t         number;
	uint64_t         value;
	struct run_end   end;
};

/*
 * Most runs are over within this time, and the next cell is built in the place of theirs: the keeper, which would wake up beside
 * the program, has nothing to do for them.
 */
enum { LAUNCH_TAKEN_MS = 15 };

/* For a session to be closed in order, after its time. */
enum { SESSION_GRACE_MS = 5000 };

/* From the client. */
enum launch_ask_kind {
	LAUNCH_CANCEL,  /* reason */
	LAUNCH_WAITS,   /* a call of a tool takes long: the wall clock stops */
	LAUNCH_GOES_ON, /* none does any more */
	LAUNCH_STAYS,   /* it is a session: ms, and neither CPU time nor a lack of memory ends it */
	LAUNCH_FREEZE,  /* a session that has nothing to do: it is frozen where control groups can do that; SESSION says so */
	LAUNCH_THAW,    /* it is to do something */
	LAUNCH_NETWORK, /* with a SOCK_SEQPACKET socket: one struct net_listeners with the cell's sockets is sent over it, once, when the program has sent something to one of them */
};

struct launch_ask {
	enum launch_ask_kind kind;
	enum exit_reason     reason;
	uint64_t             ms; /* STAYS: its wall time, from its start */
};

/*
 * A warm cell that waits for its order can be reached without who made it: these descriptors come with READY, in this
 * order. The streams are the ends of whoever uses the ticket, as in pipes.h; those that a run did not ask for are closed
 * by him. Over TICKET_LAUNCHER goes one struct launch_order without descriptors, then struct launch_ask; the supervisor's
 * messages come back over it, but for STARTED. The order's bytes: order_file.h. The holder of the ticket tells the fork over
 * TICKET_ORDERS; of a command (code_len 0) the supervisor does, once there is no main.py, and sends STARTED with the streams.
 */
enum { TICKET_LAUNCHER, TICKET_ORDERS, TICKET_ORDER_FILE, TICKET_STDOUT, TICKET_STDERR, TICKET_STDIN, TICKET_RESULT, TICKET_FDS };

/*
 * From the keeper, or a launcher to itself, to a cell, once, with descriptors: the socket to the client, the arguments (exec_args.h), the
 * text of the program if there is one, the program's end of the socket to its tools if it has some. Over a ticket it comes without any: that socket
 * goes to the fork with its order.
 */
struct launch_order {
	struct limits limits;
	struct exec_args exec_args; /* fd: as received */
	uint32_t      code_len;
	uint32_t      stdin_pipe, result_pipe, tools, warm; /* 0 or 1 */
	double        asked; /* CLOCK_MONOTONIC ms */
};
