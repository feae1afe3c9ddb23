#include "rate_limit.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000.0

int64_t rate_bucket_take_call(struct rate_bucket *b, uint64_t per_minute, int64_t now_ms)
{
	double each_ms = MINUTE_MS / (double)(per_minute ? per_minute : 1);

	if (!per_minute)
		return 0;
	b->calls = b->began ? b->calls + (double)(now_ms - b->at_ms) / each_ms : (double)per_minute;
	if (b->calls > (double)per_minute)
		b->calls = (double)per_minute;
	b->at_ms = now_ms;
	b->began = true;
	if (b->calls < 1) {
		double wait_ms = (1 - b->calls) * each_ms;

		return (int64_t)wait_ms + (wait_ms > (double)(int64_t)wait_ms); /* rounded up */
	}
	b->calls -= 1;
	return 0;
}

/* The bucket of the principal. A new one takes a free element, or that of the principal that was quiet longest. */
static struct rate *rate_find_or_add(struct rates *r, const char *principal)
{
	struct rate *quiet = r->rate;

	for (size_t i = 0; i < r->n; i++) {
		if (strcmp(r->rate[i].principal, principal) == 0)
			return &r->rate[i];
		if (r->rate[i].bucket.at_ms < quiet->bucket.at_ms)
			quiet = &r->rate[i];
	}
	if (r->n < RATE_PRINCIPALS)
		quiet = &r->rate[r->n++];
	*quiet = (struct rate){ .bucket = { 0 } };
	snprintf(quiet->principal, sizeof quiet->principal, "%s", principal);
	return quiet;
}

int64_t rate_limit_take_call(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms)
{
	if (!per_minute)
		return 0;
	return rate_bucket_take_call(&rate_find_or_add(r, principal)->bucket, per_minute, now_ms);
}
