/*
 * run.h - one program in one cell, from order to end.
 *
 * run_start() forks a launcher and returns at once. The launcher builds the
 * cell, watches the clocks and the control groups, tears everything down and
 * says how it ended; the caller reads the program's pipes and may ask for an
 * early end. Either one cleans up when the other dies:
 *
 *   the caller's death closes the socket: the launcher kills the cell;
 *   the launcher's death kills PID 1 of the cell, which the caller inherits
 *   (it becomes a child subreaper); run_next() reaps it, removes the control
 *   groups and says that the launcher was killed.
 *
 * Between the two go fixed-size structs over a socket, so that the launcher
 * can become a service without a change here.
 */
#pragma once
#include "err.h"
#include "limits.h"
#include "mount_plan.h"
#include "pipes.h"
#include "policy_bundle.h"
#include "record.h"
#include "refused_call.h"
#include "words.h"

#include <linux/filter.h>

struct run_order {
	const struct limits   *limits;
	const struct words    *words;
	int                    code_fd; /* /workspace/main.py, a sealed memory file; -1 when a command is run */
	uint32_t               code_len;
	const struct mount_plan *mounts;
	const int             *shown_fd; /* opened by the caller, as many as the plan has */
	size_t                 shown_len;
	bool                   stdin_pipe, result_pipe, workspace_exec;
	bool                   warm; /* words as a zygote can carry them out: python3 -I FILE ARG... */
	bool                   require_all; /* every layer, also those that kernels may lack */
	const char            *store[2], *rootfs, *runtime_dir;
	const struct policy_bundle *policy; /* what the filter is made of; NULL when it is there */
	const struct sock_fprog *filter;    /* else NULL */
	const struct sock_fprog *telling;   /* with it: the same, with notices for the listener (filter_notice.h), where it can have them */
};

/* A limit that refused something, by its row in limits_fields. */
struct run_hit {
	enum limit_id limit;
	int64_t       value, peak, times;
};

struct run_end {
	enum exit_reason reason;
	int              wait_status; /* as from wait4(); -1 when there is none */
	double           wall_ms, cpu_ms, setup_ms, started_at;
	int64_t          memory_peak_bytes, pids_peak, io_read_bytes, io_write_bytes;
	struct run_hit   hit[8];
	unsigned         hits;
	struct refused_calls refused;
	bool             refused_known; /* a listener was there */
	uint64_t         layers, missing;
	char             missing_why[2][200]; /* of own-ids and no-groups; of the limits. "": nothing to say */
	bool             warm;
	int              exec_errno; /* the program itself could not be started: 126/127 as in the shell */
	char             rootfs_digest[65]; /* hex; "" when it did not come that far */
	struct err       why;
	struct err       left;       /* what could not be cleaned up; kind NONE when all was */
};

/* Nothing is known: every figure becomes null. */
#define RUN_END_NONE                                                                                                                   \
	((struct run_end){ .wait_status = -1, .wall_ms = -1, .cpu_ms = -1, .setup_ms = -1, .started_at = -1, .memory_peak_bytes = -1, \
			   .pids_peak = -1, .io_read_bytes = -1, .io_write_bytes = -1 })

struct run {
	int      sock;
	pid_t    launcher;
	uint32_t slot;
	bool     has_slot, started;
	size_t   pipes; /* how many come with STARTED */
	const char *runtime_dir;
};

enum run_event { RUN_GOES_ON, RUN_STARTED, RUN_LIMIT, RUN_ENDED };

must_use int run_start(struct run *ret, const struct run_order *order, struct err *e);

/*
 * Waits for one word: poll run->sock to know when one is there. GOES_ON is none of the caller's business.
 * STARTED brings as many ends as were asked for, in the order of pipes.h: the caller owns them. The others are -1. LIMIT: end->hit[0] is the limit that is just ending the run; nothing else of *end
 * is set. ENDED comes exactly once, also when the launcher died, and nothing of the cell is left then.
 */
must_use enum run_event run_next(struct run *run, int streams[PIPES_MAX], struct run_end *end);

/* Ask for the end, once or often. */
void run_cancel(const struct run *run, enum exit_reason reason);
void run_done(struct run *run);
