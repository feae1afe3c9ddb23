/*
 * zygote_protocol.h - what a launcher asks of the zygote of its profile
 *
 * One struct zygote_order a datagram, with these descriptors, in this order:
 * the socket on which the zygote answers, the one on which its fork reports as
 * a program does (child_report), PID 1 of the cell, the pipe on which PID 1
 * says that it is hard, the words, the v1 groups to join, the v2 group to be
 * cloned into. The text of the program is PID 1's to write.
 *
 * The answer is FORKED and later ENDED, or FAILED. An end of file without one
 * of the last two is the zygote's death.
 */
#pragma once
#include "child.h"

enum { ZYGOTE_FD_ORDERS = 3, ZYGOTE_FD_READY, ZYGOTE_FD_LOG, ZYGOTE_FD_FILTER, ZYGOTE_FDS_END };
enum { ZYGOTE_ANSWER, ZYGOTE_REPORT, ZYGOTE_CELL, ZYGOTE_GO, ZYGOTE_WORDS, ZYGOTE_GROUPS /* and from here on */ };
enum { ZYGOTE_ORDER_FDS_MAX = ZYGOTE_GROUPS + GROUP_TREES_MAX + 1 };

struct zygote_order {
	struct child_order order;
	uint32_t           joins, clones_into; /* how many groups of each kind */
	uint32_t           init_id, program_id, workspace_exec; /* ids as seen inside; what is no program's id is refused */
	int64_t            cpu_before_ns;
};

enum zygote_kind { ZYGOTE_FORKED = 1, ZYGOTE_FAILED, ZYGOTE_ENDED };

struct zygote_word {
	uint32_t kind;
	int32_t  status; /* ENDED: as from wait4(). FAILED: errno */
};
