/*
 * wall_clock.h - the wall time of a program, whose clock stops during long tool calls
 *
 * All times are CLOCK_MONOTONIC in ms; the caller passes the current time. Pure.
 */
#pragma once
#include "limits.h"

struct wall_clock {
	double started;                /* 0: not yet */
	double waits_since, waited_ms; /* when the current wait for a tool call began, or 0; the sum of all earlier waits */
};

static inline void wall_clock_set_waiting(struct wall_clock *c, bool waits, double now)
{
	if (c->waits_since > 0)
		c->waited_ms += now - c->waits_since;
	c->waits_since = waits ? now : 0;
}

/* The deadline of the program. During a wait it is the latest possible one: all of tool_wait_ms is added. */
static inline double wall_clock_end(const struct wall_clock *c, const struct limits *l, double now)
{
	double most   = (double)l->tool_wait_ms;
	double waited = c->waited_ms + (c->waits_since > 0 ? now - c->waits_since : 0);

	return c->started + (double)l->wall_ms + (c->waits_since > 0 || waited > most ? most : waited);
}
