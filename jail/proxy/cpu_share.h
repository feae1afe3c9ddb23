/*
 * cpu_share.h - how much processor time brig-proxy may spend for one run
 *
 * Pure: times come from the caller, in nanoseconds. A bucket of processor time, which holds CPU_BURST_NS and fills at
 * the rate of the share. What one event takes is known only afterwards, so the bucket may be in debt: the run then
 * waits until the debt is paid.
 */
#pragma once
#include "defs.h"

enum { CPU_WHOLE = 1000, CPU_BURST_NS = 50 * 1000 * 1000 }; /* shares are in thousandths of one processor */

struct cpu_share {
	int64_t at_ns, left_ns;
};

/*
 * The share of a run with this limit, of so many runs. Beside others a quarter at most: with less than a half, the
 * request of another run mostly finds brig-proxy idle.
 */
uint64_t cpu_share_for_runs(uint64_t cpus, uint64_t runs);

void    cpu_share_init(struct cpu_share *s, int64_t now_ns);
/* The run has used this much. Returns for how many milliseconds its events wait now; 0: they do not. A whole processor
 * never waits. */
int64_t cpu_share_spend(struct cpu_share *s, uint64_t milli, int64_t now_ns, int64_t used_ns);
