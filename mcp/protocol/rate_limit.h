/*
 * rate_limit.h - how many tool calls each client may make in a minute.
 *
 * A token bucket for each principal, which fills evenly: a client that was quiet may make a minute's calls at once.
 * Pure: the caller passes the time.
 */
#pragma once
#include "defs.h"

/* Principals that are remembered; if there are more, the one that was quiet longest is forgotten. */
#define RATE_PRINCIPALS 64

struct rate {
	char    principal[64];
	double  calls; /* calls that are left */
	int64_t at_ms; /* when that was computed */
};

struct rates {
	struct rate rate[RATE_PRINCIPALS];
	size_t      n;
};

/* Takes one call. Returns 0, or the milliseconds until the next one is allowed. per_minute 0: no limit. */
must_use int64_t rate_limit_take_call(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms);
