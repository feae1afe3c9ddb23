/* cell_order.h - what a cell is made of, and what its program is told */
#pragma once
#include "exec_args.h"
#include "limits.h"
#include "mount_plan.h"
#include "net_listeners.h"

#include <linux/filter.h>

struct cell_order {
	const struct limits     *limits;
	const struct mount_plan *mounts;
	const int               *shown_fd; /* one for each MOUNT_SHOWN of the plan */
	size_t                   shown_len;
	const char              *rootfs; /* for messages */
	const struct sock_fprog *filter;
	const struct sock_fprog *notifying; /* the same filter with notices for the listener (filter_notice.h); without them if none are possible */
	const struct net_listeners *listeners; /* where the cell listens for brig-proxy; NULL: it has no network */
	bool                     workspace_exec, require_all; /* require_all: every layer, also those that kernels may lack */
	/* Of the run, set when its order has come: */
	const struct exec_args  *exec_args;
	int                      code_fd; /* /workspace/main.py, a sealed memory file; -1 when a command is run */
	uint32_t                 code_len;
	int                      tools_fd; /* the program's end of the socket to its tools; -1: it has none */
	bool                     stdin_pipe, result_pipe;
};
