/*
 * runner.h - one run, from the clone of PID 1 to the last process, as the supervisor or launcher watches it
 *
 * Everything that can end a run is handled here: messages of the cell, its control groups, the clocks, the client.
 * The first reason is the one in the record; later ones are consequences of it.
 */
#pragma once
#include "cell.h"
#include "files.h"
#include "run_spec.h"
#include "wall_clock.h"

#include <poll.h>

/* How the program ended, and the free space at that moment of each mount that it could fill. */
struct program_end {
	int      status; /* as from wait4() */
	unsigned mounts_read;
	uint64_t free_bytes[CELL_MOUNTS], free_inodes[CELL_MOUNTS];
};

/* Which process has sent what to run: the monitor (or launcher) over the control socket, or the holder of the lease. */
enum spec_from { SPEC_NONE, SPEC_FROM_MONITOR, SPEC_FROM_LEASE };

/* Where the client's ends of the pipes are. HERE: in cell.warm.prepared, once PID 1 has made them. */
enum streams { STREAMS_HERE, STREAMS_IN_LEASE, STREAMS_GIVEN };

/* PROGRAM_LEFT_NONE: it has ended, and PID 1 has no other process. */
enum program_state { PROGRAM_NOT_ENDED, PROGRAM_ENDED, PROGRAM_LEFT_NONE };

/*
 * BUILDS -> READY -> ENDS -> ENDS_UNUSED, and BUILDS -> ENDS
 *
 * READY: the cell is built, and may wait for what to run. ENDS: the reason is known, and the cell is killed.
 * ENDS_UNUSED: it had nothing to run and did nothing wrong, so the monitor gets no reason.
 */
enum runner_state { RUNNER_BUILDS, RUNNER_READY, RUNNER_ENDS, RUNNER_ENDS_UNUSED };

struct runner {
	struct cell_spec          spec;
	struct limits             limits; /* of the spec */
	enum spec_from            spec_from;
	struct run_spec_head      head;   /* what to run, once it has come */
	struct cell               cell;
	struct run_result         end;
	int                       client; /* -1: not known yet, or gone */
	bool                      for_one_run; /* as in supervisor_protocol.h */
	int                       control;  /* brings what to run; end of file: the monitor gives the cell up */
	int                       lease;    /* the same without descriptors, from its holder; -1: none is out */
	uint64_t                  wall_ms_max, tool_wait_ms_max, lifetime_ms_max; /* what a lease or session may ask for */
	uint64_t                  session_ms; /* wall time of a session (LAUNCH_SESSION_LIFETIME); 0: none */
	bool                      is_frozen; /* the session */
	uint32_t                  victims;  /* processes of a session that were killed because it had no memory left */
	int                       streams[PIPES_MAX];
	double                    asked; /* CLOCK_MONOTONIC ms */
	struct wall_clock         clock; /* of the program */
	double                    next_cpu; /* CLOCK_MONOTONIC ms: when CPU time is looked at again */
	double                    next_oom; /* CLOCK_MONOTONIC ms: no memory events are read until then; 0: they are */
	double                    started_at;
	int64_t                   setup_cpu_ns; /* CPU time of the cell's set-up, which is not the program's */
	enum runner_state         state; /* changed by runner_enter_state() alone */
	bool                      execs; /* the fork executes a file: it has succeeded when its report socket closes */
	bool                      oom; /* the kernel or a control group has reported it, before or after the end */
	bool                      is_warm_spec; /* the fork runs the program without an exec */
	double                    taken_due_ms; /* CLOCK_MONOTONIC ms: when to send LAUNCH_TAKEN; 0: no need */
	uint32_t                  cells_before; /* as number of LAUNCH_READY */
	enum streams              client_streams;
	enum program_state        program_state;
	struct program_end        program;
	struct files              files;
};

void runner_init(struct runner *w);
/* After cell_reap_and_release(): closes the descriptors that are left. */
void runner_close_fds(struct runner *w);

static inline bool runner_is_ending(const struct runner *w)
{
	return w->state >= RUNNER_ENDS;
}

/* Ends the run for this reason, or for the one that was first: the cell takes no spec any more, and is killed. */
void runner_end_run(struct runner *w, enum exit_reason reason);
void runner_fail_run(struct runner *w, enum exit_reason reason, const struct err *why);

/* False: a group above the cell's ran out of memory, that of the service or of the host. */
bool runner_reached_memory_limit(const struct runner *w);

/* Sends the client the limit behind this reason, if there is one. */
void runner_send_limit_of_reason(const struct runner *w, enum exit_reason reason);

/*
 * For the caller's loop: how long to wait at most (ms), for which descriptors, and what to do after poll(). False:
 * PID 1 has ended, and every process of the cell with it; or PID 1 is the only one left (PROGRAM_LEFT_NONE).
 */
enum { RUNNER_FDS = 13 };

double runner_ms_until_wakeup(struct runner *w);
/* A descriptor of which nothing need be known now, not even its end, is given as ~fd, which poll() ignores. */
void   runner_fill_pollfds(const struct runner *w, struct pollfd fds[RUNNER_FDS]);
bool   runner_handle_events(struct runner *w, const struct pollfd fds[RUNNER_FDS]);
/* A zygote is up now: a cell that was built before asks it for a fork. */
void   runner_handle_zygote_up(struct runner *w);

/* The cell was built for a run whose spec is on its way. The spec brings the socket on which a failure is reported. */
bool runner_awaits_spec(const struct runner *w);

/* The cell has ended. A spec that came before is read: its client gets the reason, and nothing is carried out. */
void runner_receive_late_spec(struct runner *w);

/* CPU time of the program, from what its group has counted; RECORD_NONE where this host does not count. */
double runner_program_cpu_ms(const struct runner *w, int64_t cg_ns);
