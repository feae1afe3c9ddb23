/* run_bounds.c - how much a run may have, and has had (run.h) */
#include "proxy.h"

size_t run_allowance(struct run *run, enum net_reason *reason)
{
	uint64_t left = run->bytes < run->bytes_max ? run->bytes_max - run->bytes : 0;
	size_t   now;

	*reason = left ? NET_REASON_NONE : NET_REASON_TOO_MUCH;
	if (left == 0)
		return 0;
	now = byte_rate_left(&run->rate);
	return now < left ? now : (size_t)left;
}

void run_spend(struct run *run, size_t bytes)
{
	run->bytes += bytes;
	byte_rate_spend(&run->rate, bytes);
}

enum net_reason run_may_open(const struct run *run)
{
	const struct proxy *proxy  = run->proxy;
	uint64_t            others = proxy->open - run->open;

	if (run->open >= run->connections_max)
		return NET_REASON_TOO_MANY;
	if (run->bytes >= run->bytes_max)
		return NET_REASON_TOO_MUCH;
	return others >= proxy->open_max || run->open >= (proxy->open_max - others + 1) / 2 ? NET_REASON_NO_MEMORY
											    : NET_REASON_NONE;
}
