#include "byte_rate.h"

enum { BURST_MS = 100, WAKE_MS = 20 };

void byte_rate_init(struct byte_rate *r, struct loop *loop, uint64_t per_second, void (*wake)(void *owner), void *owner)
{
	*r = (struct byte_rate){
		.loop = loop, .per_second = per_second, .at_ms = loop_now_ms(), .timer = { .due = wake, .owner = owner }
	};
	r->left = per_second / (1000 / BURST_MS) + 1;
}

/* Adds whole bytes for whole milliseconds. at_ms stays until a byte is due: a slow rate would never get one otherwise.
 */
static void refill_bytes(struct byte_rate *r)
{
	int64_t  now  = loop_now_ms();
	int64_t  ms   = now - r->at_ms < BURST_MS ? now - r->at_ms : BURST_MS;
	uint64_t more = r->per_second * (uint64_t)ms / 1000, most = r->per_second / (1000 / BURST_MS) + 1;

	if (more == 0 && now - r->at_ms < 1000)
		return;
	r->at_ms = now;
	r->left  = r->left + more + (more == 0);
	if (r->left > most)
		r->left = most;
}

size_t byte_rate_left(struct byte_rate *r)
{
	if (r->per_second == 0)
		return SIZE_MAX;
	refill_bytes(r);
	if (r->left == 0 && !r->timer.set)
		loop_timer_set(r->loop, &r->timer, WAKE_MS);
	return r->left;
}

void byte_rate_spend(struct byte_rate *r, size_t bytes)
{
	if (r->per_second)
		r->left -= bytes < r->left ? bytes : r->left;
}

void byte_rate_done(struct byte_rate *r)
{
	if (r->loop)
		loop_timer_clear(r->loop, &r->timer);
}
