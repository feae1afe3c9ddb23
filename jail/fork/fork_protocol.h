/*
 * fork_protocol.h - what is asked of a fork server: by a supervisor of its zygote and its forker, by a launcher of its forker
 *
 * One struct fork_order a datagram registers a cell that is ready, with these
 * descriptors, in this order: the socket on which the server answers, the one on
 * which its fork reports as a program does (child_report), PID 1 of the cell, the
 * end of the order socket at which the fork waits, the order file, main.py, the
 * program's ends of its streams, tasks of the v1 groups to join (group.h), the v2 group to be cloned
 * into.
 *
 * The answer is WAITS, when the fork is made as soon as an order is there; then FORKS, and FORKED with a pidfd; or FAILED.
 * FORKS is sent before there is a fork. A process that gets end of file before FORKS may register the cell again, because no
 * process has read the order; after FORKS it may not, because it cannot know whether the program runs. After RETIRES, which comes
 * before FORKS or not at all, it may register the cell again, too: there is a successor.
 *
 * A fork is a child of the process that started the server (CLONE_PARENT), supervisor or launcher: how a program ended is
 * known whatever becomes of the server.
 */
#pragma once
#include "child.h"

enum { ZYGOTE_FD_ORDERS = 3, ZYGOTE_FD_READY, ZYGOTE_FD_LOG, ZYGOTE_FD_FILTER, ZYGOTE_FDS_END };
enum {
	FORK_ANSWER, FORK_REPORT, FORK_CELL, FORK_HANDED, /* HANDED_NULL of them, and from here on */
	FORK_GROUPS = FORK_HANDED + HANDED_NULL,
};
enum { FORK_ORDER_FDS_MAX = FORK_GROUPS + GROUP_TREES_MAX + 1 };

struct fork_order {
	struct child_rlimits rlimits;
	uint32_t joins, clones_into; /* how many groups of each kind */
	uint32_t init_id, program_id, workspace_exec; /* ids as seen inside; what is no program's id is refused */
	uint32_t ahead;              /* forked at once, whenever the order comes */
	uint32_t has_code;           /* there is a program for main.py, or will be */
	uint32_t landlock_abi;       /* as the record says it: 0 where the kernel has none */
	uint32_t owner_id;           /* of the cell's user namespace, as the server sees it: a forker enters as that, a zygote need not */
	int64_t  cpu_before_ns;
};

enum fork_word_kind { FORK_WAITS = 1, FORK_FORKS, FORK_FORKED, FORK_FAILED, FORK_RETIRES };

struct fork_message {
	uint32_t kind;
	int32_t  value; /* FORKED: the pid. FAILED: errno */
};
