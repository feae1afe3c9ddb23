/* cell_spec.h - what a cell is made of; what it is to run comes later, and is a struct run_spec */
#pragma once
#include "limits.h"
#include "mount_plan.h"
#include "net_listeners.h"

#include <linux/filter.h>

struct cell_spec {
	const struct limits     *limits;
	const struct mount_plan *mounts;
	const int               *shown_fd; /* one for each MOUNT_SHOWN of the plan */
	size_t                   shown_len;
	const char              *rootfs; /* for messages */
	const struct sock_fprog *filter;
	const struct sock_fprog *notifying; /* the same with notices for the listener (filter_notice.h), if possible */
	const struct net_listeners *listeners; /* where the cell listens for brig-proxy; NULL: it has no network */
	bool                     workspace_exec, require_all; /* require_all: also layers that kernels may lack */
	bool                     has_code; /* a run with files: it will have a main.py, which is none of them */
};
