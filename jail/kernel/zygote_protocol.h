/*
 * zygote_protocol.h - what a supervisor asks of the zygote of its profile
 *
 * One struct zygote_order a datagram registers a cell that is ready, with these
 * descriptors, in this order: the socket on which the zygote answers, the one on
 * which its fork reports as a program does (child_report), PID 1 of the cell, the
 * end of the order socket at which the fork waits, the letter, main.py, the
 * program's ends of its streams, the v1 groups to join, the v2 group to be cloned
 * into.
 *
 * The answer is WAITS, when the fork is made as soon as an order is there; then FORKS, and FORKED with a pidfd; or FAILED.
 * FORKS is sent before there is a fork. A supervisor that gets end of file before FORKS may register the cell again, because no
 * process has read the order; after FORKS it may not, because it cannot know whether the program runs. After RETIRES, which comes
 * before FORKS or not at all, it may register the cell again, too: there is a successor.
 *
 * A fork is a child of the process that started the zygote (CLONE_PARENT), which is the supervisor: how a program ended is
 * known whatever becomes of its zygote.
 */
#pragma once
#include "child.h"

enum { ZYGOTE_FD_ORDERS = 3, ZYGOTE_FD_READY, ZYGOTE_FD_LOG, ZYGOTE_FD_FILTER, ZYGOTE_FDS_END };
enum {
	ZYGOTE_ANSWER, ZYGOTE_REPORT, ZYGOTE_CELL, ZYGOTE_HANDED, /* HANDED_NULL of them, and from here on */
	ZYGOTE_GROUPS = ZYGOTE_HANDED + HANDED_NULL,
};
enum { ZYGOTE_ORDER_FDS_MAX = ZYGOTE_GROUPS + GROUP_TREES_MAX + 1 };

struct zygote_order {
	uint64_t files, cpu_s, data, processes; /* rlimits: the cell's own */
	uint32_t joins, clones_into; /* how many groups of each kind */
	uint32_t init_id, program_id, workspace_exec; /* ids as seen inside; what is no program's id is refused */
	uint32_t ahead;              /* forked at once, whenever the order comes */
	int64_t  cpu_before_ns;
};

enum zygote_kind { ZYGOTE_WAITS = 1, ZYGOTE_FORKS, ZYGOTE_FORKED, ZYGOTE_FAILED, ZYGOTE_RETIRES };

struct zygote_word {
	uint32_t kind;
	int32_t  value; /* FORKED: the pid. FAILED: errno */
};
