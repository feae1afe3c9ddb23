/*
 * watch.h - one run as the process that watches it sees it, from the clone to the last process.
 *
 * Everything that can end a run comes together here: the cell's own messages, its
 * control groups, the clocks, the client. The first reason stays;
 * what comes later is its consequence.
 */
#pragma once
#include "cell.h"
#include "files.h"
#include "launch.h"
#include "wall_clock.h"

#include <poll.h>

/* How the program ended, and what was left then of each mount that it could fill. */
struct program_end {
	int      status; /* as from wait4() */
	unsigned mounts_read;
	uint64_t free_bytes[CELL_MOUNTS], free_inodes[CELL_MOUNTS];
};

struct watch {
	struct cell_order       order;
	struct limits           limits; /* of the order */
	struct cell             cell;
	struct run_end          end;
	int                     client; /* -1: not known yet, or gone */
	int                     unread;   /* of a fork to which nothing was ordered: its end of the order socket closes when it has read one. Borrowed; else -1 */
	bool                    awaited;  /* as in supervisor_protocol.h */
	int                     control;  /* brings the order; its end is that of the keeper */
	int                     ticket;   /* as well, without descriptors, from who was given the other end; -1: nobody */
	uint64_t                wall_ms_max, tool_wait_ms_max, lifetime_ms_max; /* that its user may ask for */
	uint64_t                session_ms; /* LAUNCH_STAYS: its wall time; 0: it is no session */
	bool                    is_frozen; /* the session */
	uint32_t                victims;  /* processes of a session that were ended because it had no memory */
	int                     streams[PIPES_MAX];
	double                  asked; /* CLOCK_MONOTONIC ms */
	struct wall_clock       clock; /* of the program */
	double                  next_cpu; /* CLOCK_MONOTONIC ms: when CPU time is looked at again */
	double                  next_oom; /* until then no process looks for memory that can be taken back; 0: one may */
	double                  started_at;
	int64_t                 setup_cpu_ns; /* spent in the cell before the program: not its own */
	bool                    ordered, ready, execs, decided, reported, oom;
	bool                    is_warm_order, has_ticket_order; /* not to be executed; given to the fork by another process */
	double                  tell_taken; /* CLOCK_MONOTONIC ms: when the keeper is told that the ticket was used; 0: it was, or there is nothing to tell */
	uint32_t                nth;      /* as number of LAUNCH_READY */
	bool                    has_streams; /* the client took them from its ticket */
	bool                    told;     /* the client has the streams of a warm run */
	bool                    is_blameless; /* it ended before it had an order, and the cell did nothing wrong: the keeper is not told why */
	bool                    is_alone; /* the program has ended, and PID 1 has no other process */
	struct program_end      program;
	struct files            files;
};

void watch_init(struct watch *w);
/* After cell_reap(): what is still open of it. */
void watch_close(struct watch *w);

/* Ends the run for this reason, or for the one that was first: the cell takes no order any more, and is killed. */
void watch_decide(struct watch *w, enum exit_reason reason);
void watch_fail(struct watch *w, enum exit_reason reason, const struct err *why);

/* Else it was a group above ours that had no memory: a service's, the host's. */
bool watch_reached_memory(const struct watch *w);

/* The limit behind a reason to end, if it has one. */
void watch_say_limit(const struct watch *w, enum exit_reason reason);

/*
 * One turn: what there is to wait for, for how long at most (ms), and what came of it. False: PID 1 is gone and with it every
 * process of the cell, or is the last one (is_alone). Fills started, streams and how the program ended.
 */
enum { WATCH_FDS = 14 };

double watch_left(struct watch *w);
void   watch_fds(const struct watch *w, struct pollfd fds[WATCH_FDS]);
bool   watch_hear(struct watch *w, const struct pollfd fds[WATCH_FDS]);
/* There is a zygote now: a cell that was built without one may have it fork. */
void   watch_warm_is_up(struct watch *w);

/* The cell was built for a run whose order is on its way: only with it comes the socket on which a failure is told. */
bool watch_awaits_order(const struct watch *w);

/*
 * After the end of the cell, whose reason stays: an order that came before it was decided is answered, so that its client hears why.
 * Nothing of it is carried out.
 */
void watch_take_late_order(struct watch *w);

/* Of the program, out of what the group has counted in nanoseconds; negative when this host does not count. */
double watch_cpu_ms(const struct watch *w, int64_t group_ns);
