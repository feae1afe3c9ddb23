#include "rate_limit.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000.0

/* The bucket of the principal. A new one takes a free element, or that of the principal that was quiet longest. */
static struct rate *rate_find_or_add(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms)
{
	struct rate *quiet = r->rate;

	for (size_t i = 0; i < r->n; i++) {
		if (strcmp(r->rate[i].principal, principal) == 0)
			return &r->rate[i];
		if (r->rate[i].at_ms < quiet->at_ms)
			quiet = &r->rate[i];
	}
	if (r->n < RATE_PRINCIPALS)
		quiet = &r->rate[r->n++];
	*quiet = (struct rate){ .calls = (double)per_minute, .at_ms = now_ms };
	snprintf(quiet->principal, sizeof quiet->principal, "%s", principal);
	return quiet;
}

int64_t rate_limit_take_call(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms)
{
	double       each_ms = MINUTE_MS / (double)(per_minute ? per_minute : 1);
	struct rate *one;

	if (!per_minute)
		return 0;
	one = rate_find_or_add(r, principal, per_minute, now_ms);
	one->calls += (double)(now_ms - one->at_ms) / each_ms;
	if (one->calls > (double)per_minute)
		one->calls = (double)per_minute;
	one->at_ms = now_ms;
	if (one->calls < 1) {
		double wait_ms = (1 - one->calls) * each_ms;

		return (int64_t)wait_ms + (wait_ms > (double)(int64_t)wait_ms); /* rounded up */
	}
	one->calls -= 1;
	return 0;
}
