/*
 * rate.h - how many tool calls each client may make in a minute.
 *
 * A bucket for each principal that fills evenly: who was quiet may send a
 * minute's worth at once. Pure; the clock is the caller's.
 */
#pragma once
#include "defs.h"

/* Principals that are remembered; of more, the one that was quiet longest is forgotten. */
#define RATE_PRINCIPALS 64

struct rate {
	char    principal[64];
	double  calls; /* that are left */
	int64_t at_ms; /* when that was so */
};

struct rates {
	struct rate rate[RATE_PRINCIPALS];
	size_t      n;
};

/* Takes one. per_minute 0: without bound. Else 0, or the milliseconds until the next one is there. */
must_use int64_t rates_take(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms);
