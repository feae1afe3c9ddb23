/*
 * watch.h - one run, from the clone of PID 1 to the last process, as the supervisor or launcher watches it
 *
 * Everything that can end a run is handled here: messages of the cell, its control groups, the clocks, the client. The first reason
 * is the one in the record; later ones are consequences of it.
 */
#pragma once
#include "cell.h"
#include "files.h"
#include "launch.h"
#include "wall_clock.h"

#include <poll.h>

/* How the program ended, and the free space at that moment of each mount that it could fill. */
struct program_end {
	int      status; /* as from wait4() */
	unsigned mounts_read;
	uint64_t free_bytes[CELL_MOUNTS], free_inodes[CELL_MOUNTS];
};

struct watch {
	struct cell_order       order;
	struct limits           limits; /* of the order */
	struct order_head       head;   /* of the order, when it has come */
	struct cell             cell;
	struct run_end          end;
	int                     client; /* -1: not known yet, or gone */
	bool                    for_one_run; /* as in supervisor_protocol.h */
	int                     control;  /* brings the order; end of file: the keeper has ended, or gives the cell up */
	int                     ticket;   /* brings the order without descriptors, from the holder of the other end; -1: no ticket is out */
	uint64_t                wall_ms_max, tool_wait_ms_max, lifetime_ms_max; /* the most that an order by ticket, or LAUNCH_MAKE_SESSION, may ask for */
	uint64_t                session_ms; /* wall time of a session (LAUNCH_MAKE_SESSION); 0: the run is no session */
	bool                    is_frozen; /* the session */
	uint32_t                victims;  /* processes of a session that were killed because it had no memory left */
	int                     streams[PIPES_MAX];
	double                  asked; /* CLOCK_MONOTONIC ms */
	struct wall_clock       clock; /* of the program */
	double                  next_cpu; /* CLOCK_MONOTONIC ms: when CPU time is looked at again */
	double                  next_oom; /* CLOCK_MONOTONIC ms: until then memory events of the group are not read; 0: they are */
	double                  started_at;
	int64_t                 setup_cpu_ns; /* CPU time of the cell's set-up, which is not the program's */
	bool                    ordered, ready, execs, decided, program_has_ended, oom;
	bool                    is_warm_order, has_ticket_order; /* the fork runs the program without an exec; the order came by ticket */
	double                  taken_due_ms; /* CLOCK_MONOTONIC ms: when to tell the keeper that the ticket was used; 0: told, or nothing to tell */
	uint32_t                cells_before; /* as number of LAUNCH_READY */
	bool                    has_streams; /* the client has them from its ticket */
	bool                    has_given_streams; /* the streams were given to the client, or it has them */
	bool                    is_blameless; /* it ended before it had an order, and the cell did nothing wrong: the keeper is not told why */
	bool                    only_init_is_left; /* the program has ended, and PID 1 has no other process */
	struct program_end      program;
	struct files            files;
};

void watch_init(struct watch *w);
/* After cell_reap(): closes the descriptors that are left. */
void watch_close(struct watch *w);

/* Ends the run for this reason, or for the one that was first: the cell takes no order any more, and is killed. */
void watch_decide(struct watch *w, enum exit_reason reason);
void watch_fail(struct watch *w, enum exit_reason reason, const struct err *why);

/* False: a group above the cell's ran out of memory, that of the service or of the host. */
bool watch_reached_memory(const struct watch *w);

/* Tells the client the limit behind this reason, if there is one. */
void watch_report_limit(const struct watch *w, enum exit_reason reason);

/*
 * One turn of the caller's loop: how long to wait at most (ms), for which descriptors, and what to do after poll(). False: PID 1 has ended, and
 * every process of the cell with it; or PID 1 is the only one left (only_init_is_left).
 */
enum { WATCH_FDS = 13 };

double watch_left(struct watch *w);
/* A descriptor of which nothing need be known now, not even its end, is given as ~fd, which poll() ignores. */
void   watch_fds(const struct watch *w, struct pollfd fds[WATCH_FDS]);
bool   watch_handle_events(struct watch *w, const struct pollfd fds[WATCH_FDS]);
/* A zygote is up now: a cell that was built before asks it for a fork. */
void   watch_zygote_is_up(struct watch *w);

/* The cell was built for a run whose order is on its way. A failure can be told only on the socket that the order brings. */
bool watch_awaits_order(const struct watch *w);

/*
 * The cell has ended. An order that came before that was decided is taken, so that its client is told the reason; nothing of the order
 * is carried out.
 */
void watch_take_late_order(struct watch *w);

/* CPU time of the program, from what its group has counted; RECORD_NONE where this host does not count. */
double watch_cpu_ms(const struct watch *w, int64_t group_ns);
