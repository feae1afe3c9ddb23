#include "cell_fit.h"

#include "layer.h"

/* What enforces a limit, and so, whether it can still be changed. */
enum enforced_by {
	BY_MOUNTS, /* fixed when the cell is built; a limit without a row below counts as this */
	BY_FORK,   /* fixed when the fork has set its rlimits */
	BY_GROUPS, /* the monitor can lower it until the run begins */
	BY_CLOCK,  /* CPU time: counted by the supervisor, with a fork's rlimit behind it: can be lowered, not raised */
	BY_OTHERS, /* begins with the run, or is enforced outside of the cell: anything within the ceilings */
};

static const enum enforced_by enforced[LIMIT_COUNT] = {
	[LIMIT_files] = BY_FORK,
	[LIMIT_pids]  = BY_FORK,

	[LIMIT_memory_bytes] = BY_GROUPS,
	[LIMIT_cpus]         = BY_GROUPS,

	[LIMIT_cpu_ms] = BY_CLOCK,

	[LIMIT_wall_ms]         = BY_OTHERS,
	[LIMIT_tool_wait_ms]    = BY_OTHERS,
	[LIMIT_idle_ms]         = BY_OTHERS,
	[LIMIT_lifetime_ms]     = BY_OTHERS,
	[LIMIT_output_bytes]    = BY_OTHERS, /* by the process that reads the output */
	[LIMIT_net_bytes]       = BY_OTHERS, /* these three by brig-proxy */
	[LIMIT_net_connections] = BY_OTHERS,
	[LIMIT_net_rate]        = BY_OTHERS,
};

static enum cell_fit cell_fit_lowered_if(bool is)
{
	return is ? CELL_FIT_LOWERED : CELL_FIT_NONE;
}

/* The share of the CPUs may also be raised: a cell waits, and a larger bound for it takes nothing from other cells. */
static enum cell_fit fit_of_limit(enum limit_id limit, uint64_t asked, uint64_t built, bool warm, uint64_t missing)
{
	if (asked == built)
		return CELL_FIT_AS_IT_IS;
	switch (enforced[limit]) {
	case BY_MOUNTS:
		return CELL_FIT_NONE;
	case BY_FORK:
		return cell_fit_lowered_if(!warm);
	case BY_GROUPS:
		if (limit == LIMIT_cpus)
			return CELL_FIT_LOWERED;
		/* Else the fork has set RLIMIT_DATA. */
		return cell_fit_lowered_if(asked < built && !(warm && missing & LAYER_BIT(MEMORY)));
	case BY_CLOCK:
		if (!warm)
			return CELL_FIT_AS_IT_IS;
		return asked < built && !(missing & LAYER_BIT(CPU_TIME)) ? CELL_FIT_AS_IT_IS : CELL_FIT_NONE;
	case BY_OTHERS:
		return CELL_FIT_AS_IT_IS;
	}
	return CELL_FIT_NONE;
}

enum cell_fit cell_fit_of_limits(const struct limits *asked, const struct limits *built, bool warm, uint64_t missing)
{
	enum cell_fit least = CELL_FIT_AS_IT_IS, one;

	if (warm && (missing & asked->must || (missing & LAYER_BIT(MEMORY) && asked->waived != built->waived)))
		return CELL_FIT_NONE;
	for (int i = 0; i < LIMIT_COUNT; i++) {
		one = fit_of_limit((enum limit_id)i, limits_value(asked, &limits_fields[i]),
			     limits_value(built, &limits_fields[i]), warm, missing);
		if (one < least)
			least = one;
	}
	return least;
}
