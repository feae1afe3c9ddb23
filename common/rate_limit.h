/*
 * rate_limit.h - how many calls each client may make in a minute.
 *
 * A token bucket for each, which fills evenly: a client that was quiet may make a minute's calls at once. Pure: the
 * caller passes the time.
 */
#pragma once
#include "defs.h"

/* Principals that are remembered; if there are more, the one that was quiet longest is forgotten. */
#define RATE_PRINCIPALS 64

struct rate_bucket {
	double  calls; /* calls that are left */
	int64_t at_ms; /* when that was computed */
	bool    began;
};

/* Takes one call. 0, or the milliseconds until the next one is allowed. per_minute 0: no limit. Zero b before. */
must_use int64_t rate_bucket_take_call(struct rate_bucket *b, uint64_t per_minute, int64_t now_ms);

struct rate {
	char               principal[64];
	struct rate_bucket bucket;
};

struct rates {
	struct rate rate[RATE_PRINCIPALS];
	size_t      n;
};

/* The same of a principal's bucket. */
must_use int64_t rate_limit_take_call(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms);
