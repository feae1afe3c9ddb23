/*
 * fork_protocol.h - requests to a fork server: from a supervisor to its zygote and its forker, from a launcher to its
 * forker
 *
 * A datagram with one struct fork_params registers a prepared cell. Its descriptors, in this order: the
 * socket for the answers; the socket on which the fork sends its child_report; the pidfd of PID 1; the
 * end of the order socket from which the fork reads; the order file; main.py; the program's ends of its
 * streams; tasks of each v1 group to join (cg.h); the v2 group to clone into.
 *
 * The first answer is WAITS, if the fork is made only when an order arrives; then come FORKS, and FORKED with a
 * pidfd; or FAILED. FORKS is sent before there is a fork. A process that gets end of file before FORKS may register
 * the cell again, because no process has read the order; after FORKS it may not, because it cannot know whether the
 * program runs. After RETIRES, which comes before FORKS or not at all, it may register the cell again, too: there is
 * a successor.
 *
 * A fork is a child of the process that started the server (CLONE_PARENT), supervisor or launcher, which so learns
 * how the program ended even if the server has died.
 */
#pragma once
#include "child.h"

enum { ZYGOTE_FD_REQUESTS = 3, ZYGOTE_FD_READY, ZYGOTE_FD_LOG, ZYGOTE_FD_FILTER, ZYGOTE_FD_ACTIVITY, ZYGOTE_FDS_END };
enum {
	FORK_ANSWER, FORK_REPORT, FORK_CELL, FORK_HANDED, /* HANDED_NULL of them, as HANDED_ORDERS and so on */
	FORK_GROUPS = FORK_HANDED + HANDED_NULL,
};
enum { FORK_REQUEST_FDS_MAX = FORK_GROUPS + CG_TREES_MAX + 1 };

struct fork_params {
	struct child_rlimits rlimits;
	uint32_t joins, clones_into; /* number of v1 groups to join; of v2 groups to clone into: 0 or 1 */
	uint32_t init_id, program_id, workspace_exec; /* ids seen inside; one that no program may have is refused */
	uint32_t ahead;              /* 1: the fork is made at once, and waits for the order itself */
	uint32_t has_code;           /* 1: the fork must not remove main.py: it is needed, or gone already */
	uint32_t landlock_abi;       /* on which the record relies; 0: the kernel has no Landlock */
	uint32_t owner_id;           /* owns the cell's user namespace; seen by the server. A forker takes it to enter */
	int64_t  cpu_before_ns;
};

enum fork_message_kind { FORK_WAITS = 1, FORK_FORKS, FORK_FORKED, FORK_FAILED, FORK_RETIRES };

struct fork_message {
	uint32_t kind;
	int32_t  value; /* FORKED: the pid. FAILED: errno */
};
