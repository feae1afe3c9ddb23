/*
 * run_spec.h - messages between the process that watches a run and the client of that run
 *
 * The supervisor of a profile, or the launcher of a private run, watches it. Its client is the server, over one
 * socket for each run; before a run there is only the monitor, over the cell's control socket. Each message is one
 * struct of a fixed size.
 */
#pragma once
#include "limits.h"
#include "run_spec_file.h"
#include "run_result.h"

enum launch_kind {
	LAUNCH_SLOT,    /* of a launcher. number: the slot, which the client cleans up if the launcher is killed */
	LAUNCH_READY,   /* to the monitor: the cell waits for an order; with a lease if it is warm; once more, without, when the lease was closed
			   unused. number: how many cells there were in its place before */
	LAUNCH_TAKEN,   /* to the monitor: a run by lease is not over after LAUNCH_TAKEN_MS, or no next cell comes */
	LAUNCH_RESTS,   /* to the monitor: the run is over, no process of it is left, and the place waits for a supervisor_cell */
	LAUNCH_STARTED, /* with the streams */
	LAUNCH_SESSION, /* when a session begins, and when one of these changes. number: processes killed because it had no memory left;
			   value: 1 if it is frozen; end: layers, missing, missing_why, rootfs_digest */
	LAUNCH_LIMIT,   /* number, value: this limit (enum limit_id) ends the run; ENDED follows */
	LAUNCH_ENDED,   /* end */
};

struct launch_message {
	enum launch_kind kind;
	uint32_t         number;
	uint64_t         value;
	struct run_result   end;
};

/*
 * Most runs are over within this time, and the supervisor builds the next cell in the same place. The monitor has
 * nothing to do for them, and would only take CPU time from the program.
 */
enum { LAUNCH_TAKEN_MS = 15 };

/* How long after the end of its lifetime a session may take to be closed in order. */
enum { SESSION_GRACE_MS = 5000 };

/* From the client. It may be sent at any time before ENDED. */
enum launch_request_kind {
	LAUNCH_CANCEL,  /* reason */
	LAUNCH_PAUSE_CLOCK, /* a call of a tool takes long: stop the wall clock */
	LAUNCH_RESUME_CLOCK, /* start the wall clock again */
	/* the run is a session of this many ms; neither CPU time nor a lack of memory ends it. Again: its lifetime is another one */
	LAUNCH_SESSION_LIFETIME,
	LAUNCH_FREEZE,  /* freeze the session, where that is possible; LAUNCH_SESSION has the result */
	LAUNCH_THAW,
	LAUNCH_NETWORK, /* with a SOCK_SEQPACKET socket: when the program first sends something to one of the cell's listening sockets, they
			   are sent over it, with one struct net_listeners */
};

struct launch_request {
	enum launch_request_kind kind;
	enum exit_reason     reason;
	uint64_t             ms; /* SESSION_LIFETIME: the wall time of the session, from its start */
};

/*
 * A lease: the descriptors that come with READY, in this order. Its holder can start a run in the cell without the
 * monitor:
 *
 *   over LEASE_SUPERVISOR it sends one struct run_spec, without descriptors, then struct launch_request; the supervisor's messages come
 *   back over it, except STARTED, because the streams (the client's ends, as in pipes.h) came with the lease. The holder closes the
 *   streams that it does not use;
 *   into LEASE_ORDER_FILE it writes the bytes of the order, and over LEASE_ORDERS it sends the fork the order's head (run_spec_file.h).
 *
 * The fork of a command (code_len 0) gets it from the supervisor, after it has removed main.py; then STARTED comes,
 * with the streams.
 */
enum { LEASE_SUPERVISOR, LEASE_ORDERS, LEASE_ORDER_FILE, LEASE_STDOUT, LEASE_STDERR, LEASE_STDIN, LEASE_RESULT, LEASE_FDS };

/*
 * What to run, within which limits: once for each cell. From the monitor, or from a launcher to itself, it comes over
 * the control socket with descriptors: the socket to the client, the arguments (exec_args.h), the text of the program
 * if head.code_len, the program's end of the socket to its tools if head.tools. Over a lease it comes without
 * descriptors; the socket to the tools then goes to the fork with the head.
 */
struct run_spec {
	struct limits        limits;
	struct run_spec_head head;
	double               asked; /* CLOCK_MONOTONIC ms */
};
