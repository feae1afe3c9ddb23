#include "rate_limit.h"

#include <stdio.h>
#include <string.h>

#define MINUTE_MS 60000.0

/* The element for a new principal: a free one, or that of the principal that was quiet longest. */
static struct rate *take_place(struct rates *r)
{
	struct rate *quiet = r->rate;

	if (r->n < RATE_PRINCIPALS)
		return &r->rate[r->n++];
	for (size_t i = 1; i < r->n; i++)
		if (r->rate[i].at_ms < quiet->at_ms)
			quiet = &r->rate[i];
	return quiet;
}

static struct rate *find(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms)
{
	struct rate *found;

	for (size_t i = 0; i < r->n; i++)
		if (strcmp(r->rate[i].principal, principal) == 0)
			return &r->rate[i];
	found  = take_place(r);
	*found = (struct rate){ .calls = (double)per_minute, .at_ms = now_ms };
	snprintf(found->principal, sizeof found->principal, "%s", principal);
	return found;
}

static int64_t round_up(double ms)
{
	int64_t whole = (int64_t)ms;

	return whole + (ms > (double)whole);
}

int64_t rates_take(struct rates *r, const char *principal, uint64_t per_minute, int64_t now_ms)
{
	double       each_ms = MINUTE_MS / (double)(per_minute ? per_minute : 1);
	struct rate *one;

	if (!per_minute)
		return 0;
	one = find(r, principal, per_minute, now_ms);
	one->calls += (double)(now_ms - one->at_ms) / each_ms;
	if (one->calls > (double)per_minute)
		one->calls = (double)per_minute;
	one->at_ms = now_ms;
	if (one->calls < 1)
		return round_up((1 - one->calls) * each_ms);
	one->calls -= 1;
	return 0;
}
