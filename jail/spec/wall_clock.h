/*
 * wall_clock.h - the wall time of a program, whose clock stands still while a call of a tool takes long
 *
 * All times are CLOCK_MONOTONIC in ms; the caller says what time it is. Pure.
 */
#pragma once
#include "limits.h"

struct wall_clock {
	double started;                /* 0: not yet */
	double waits_since, waited_ms; /* a call takes long since then, or 0; of all before it */
};

static inline void wall_clock_wait(struct wall_clock *c, bool waits, double now)
{
	if (c->waits_since > 0)
		c->waited_ms += now - c->waits_since;
	c->waits_since = waits ? now : 0;
}

/* When its wall time is used up, as it looks now. While a call takes long that is as late as all calls together may make it. */
static inline double wall_clock_end(const struct wall_clock *c, const struct limits *l, double now)
{
	double most   = (double)l->tool_wait_ms;
	double waited = c->waited_ms + (c->waits_since > 0 ? now - c->waits_since : 0);

	return c->started + (double)l->wall_ms + (c->waits_since > 0 || waited > most ? most : waited);
}
