/*
 * spawner_protocol.h - what the keeper says to the spawner of a profile
 *
 * One way, over descriptor SPAWNER_FD: first a spawner_setup with the filter and
 * a file for figures (zygote_report.h),
 * then a spawner_cell for each launcher, with its control socket, the lock on
 * its ids, the rootfs, its control groups' leaves and the directories to show. The spawner
 * has no answer: its launchers speak for themselves. It ends with the keeper.
 */
#pragma once
#include "keeper_protocol.h"
#include "launcher.h"

enum { SPAWNER_FD = 3 };

struct spawner_setup {
	char     profile[KEEPER_NAME_MAX], rootfs[KEEPER_NAME_MAX];
	uint32_t workspace_exec, require_all, warm;
	char     preload[KEEPER_PRELOAD_MAX];
	uint32_t zygote_cells, zygote_ms;
	uint64_t wall_ms_max; /* the ceiling */
	uint32_t outer_kind;
	char     outer_why[200];
};

struct spawner_cell {
	char          digest[STORE_DIGEST + 1];
	uint32_t      number, init_id, program_id;
	uint32_t      warm;    /* a zygote shall fork into it */
	uint32_t      awaited; /* it is built for a run, whose order follows at once */
	struct limits limits;
	uint64_t      layers, missing;
	char          group_why[160];
	uint32_t      leaves;
	struct {
		uint32_t v2, controllers;
	} leaf[GROUP_TREES_MAX];
	uint32_t shown_len;
	char     shown[MOUNT_SHOWN_MAX][SHOWN_NAME_MAX];
};

/* Never returns; the exit status is for the log. */
_Noreturn void spawner_main(void);
