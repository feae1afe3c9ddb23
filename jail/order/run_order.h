/* run_order.h - what a cell is to be and to run, and what is known of the run when it has ended */
#pragma once
#include "err.h"
#include "exec_args.h"
#include "limits.h"
#include "mount_plan.h"
#include "net_listeners.h"
#include "policy_bundle.h"
#include "record.h"
#include "refused_call.h"

#include <linux/filter.h>

struct run_order {
	const struct limits   *limits;
	const struct exec_args     *exec_args;
	int                    code_fd; /* /workspace/main.py, a sealed memory file; -1 when a command is run */
	uint32_t               code_len;
	const struct mount_plan *mounts;
	const int             *shown_fd; /* opened by the caller, as many as the plan has */
	size_t                 shown_len;
	int                    files_fd; /* where its files come from and go to, see files.h; -1: it has none */
	int                    tools_fd; /* the program's end of the socket to its tools; -1: it has none */
	const struct net_listeners *listeners; /* where the cell listens for brig-proxy; NULL: it has no network */
	int                    trust_fd; /* certificates for programs: PEM, a sealed memory file; -1: none beyond the rootfs's own */
	bool                   stdin_pipe, result_pipe, workspace_exec;
	bool                        warm;        /* arguments that a zygote can carry out: python3 -I FILE ARG... */
	bool                   require_all; /* every layer, also those that kernels may lack */
	const char            *store[2], *rootfs, *runtime_dir;
	const struct policy_bundle *policy; /* what the filter is made of; NULL when it is there */
	const struct sock_fprog *filter;    /* else NULL */
	const struct sock_fprog
		*notifying; /* with it: the same, with notices for the listener (filter_notice.h), where it can have them */
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
