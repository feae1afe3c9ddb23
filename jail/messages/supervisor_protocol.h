/*
 * supervisor_protocol.h - what the monitor sends to the supervisor of a profile
 *
 * One way, over descriptor SUPERVISOR_FD: first a supervisor_setup with the filter, a file for figures
 * (zygote_report.h), and certificates if has_trust; then a supervisor_cell for each cell, with its control socket,
 * the lock on its ids, the rootfs, its control groups' leaves, the directories to show and the socket for files. The
 * answers come over the control sockets (run_spec.h). The supervisor ends with the monitor.
 *
 * A control socket and what came with it stay for as long as the monitor uses the place: after LAUNCH_RESTS the next
 * supervisor_cell comes over the control socket. With it come only leaves, if they were made anew, and what the cell
 * itself needs: the directories to show and the socket for files.
 */
#pragma once
#include "cg.h"
#include "limits.h"
#include "mount_plan.h"
#include "net_listeners.h"
#include "store.h"

enum { SUPERVISOR_FD = 3 };

enum {
	MONITOR_RUNS_MAX    = 512,
	MONITOR_CELLS_MAX   = 2 * MONITOR_RUNS_MAX, /* those without a run wait for one, or are cleaned up */
	MONITOR_NAME_MAX    = 64,
	MONITOR_PRELOAD_MAX = 1024,
	MONITOR_FILTER_MAX  = 4096, /* instructions, BPF_MAXINSNS */
};

struct supervisor_setup {
	char     profile[MONITOR_NAME_MAX], rootfs[MONITOR_NAME_MAX];
	uint32_t workspace_exec, require_all, warm;
	char     preload[MONITOR_PRELOAD_MAX];
	uint32_t zygote_cells, zygote_ms;
	uint64_t cpus; /* as in struct limits, for a run that asks for no other share */
	uint64_t wall_ms_max, tool_wait_ms_max, lifetime_ms_max; /* the ceilings */
	uint32_t             has_network; /* its cells listen for brig-proxy */
	struct net_listeners listeners;
	uint32_t             has_trust; /* its cells have certificates beyond the rootfs's own */
	uint32_t rootless_kind;
	char     rootless_why[200];
};

struct supervisor_cell {
	char          digest[STORE_DIGEST + 1];
	uint32_t      number, init_id, program_id;
	uint32_t      warm;    /* 1: a zygote shall fork into it */
	uint32_t      for_one_run; /* 1: it is built for one run, whose order follows at once */
	struct limits limits;
	uint64_t      layers, missing;
	char          cg_why[160];
	uint32_t      leaves; /* 0: those that the place has */
	struct {
		uint32_t v2, controllers;
	} leaf[CG_TREES_MAX];
	uint32_t shown_len;
	char     shown[MOUNT_SHOWN_MAX][SHOWN_NAME_MAX];
	uint32_t files;    /* 0 or 1: its run brings files, or leaves some */
	uint32_t terminals; /* 0 or 1: it has a devpts of its own */
	uint32_t has_code; /* 0 or 1: its run has a main.py; 0 if it waits for any run */
};
