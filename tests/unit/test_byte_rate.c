#include "byte_rate.h"
#include "tap.h"

static void wake(void *owner)
{
	++*(int *)owner;
}

/* Turns of the loop until it woke, as the only thing that happens. */
static bool wakes(struct loop *loop, const int *woken)
{
	struct err e;
	int        before = *woken;

	for (int turn = 0; turn < 1000 && *woken == before; turn++)
		if (loop_turn(loop, 1000, &e) < 0)
			return false;
	return *woken > before;
}

static void without_a_bound(struct loop *loop)
{
	struct byte_rate r;
	int              woken = 0;

	byte_rate_init(&r, loop, 0, wake, &woken);
	byte_rate_spend(&r, SIZE_MAX);
	tap_ok(byte_rate_left(&r) == SIZE_MAX && !r.timer.set, "without a bound there is always room, and no timer");
	byte_rate_done(&r);
}

static void with_one(struct loop *loop)
{
	struct byte_rate r;
	int              woken = 0;
	int64_t          began = loop_now_ms(), took;
	uint64_t         had;

	byte_rate_init(&r, loop, 100 * 1000, wake, &woken);
	had = byte_rate_left(&r);
	tap_ok(had >= 10 * 1000 && had <= 10 * 1000 + 1, "a tenth of a second's worth may be had at once");
	for (uint64_t n = 0; n < 50 * 1000;) {
		size_t left = byte_rate_left(&r);

		if (left == 0 && !wakes(loop, &woken))
			break;
		byte_rate_spend(&r, left);
		n += left;
		had = n;
	}
	took = loop_now_ms() - began;
	tap_ok(had >= 50 * 1000 && took >= 390, "half a second's worth takes no less, but for the tenth that was there");
	tap_ok(woken > 0, "who found it empty is woken");
	byte_rate_spend(&r, SIZE_MAX);
	tap_ok(byte_rate_left(&r) < 1000 && r.left < 1000, "one that took more than there was leaves nothing, and no debt");
	byte_rate_done(&r);
	tap_ok(!r.timer.set, "nothing is woken when it is done");
}

static void slow_and_fast(struct loop *loop)
{
	struct byte_rate r;
	int              woken = 0;

	byte_rate_init(&r, loop, 1, wake, &woken);
	tap_ok(byte_rate_left(&r) == 1, "the slowest has one byte");
	byte_rate_spend(&r, 1);
	tap_ok(byte_rate_left(&r) == 0 && r.timer.set, "and then waits");
	byte_rate_done(&r);
	byte_rate_init(&r, loop, 100ull << 30, wake, &woken);
	r.at_ms -= 365ll * 24 * 3600 * 1000;
	tap_ok(byte_rate_left(&r) == (100ull << 30) / 10 + 1, "a year of rest is worth a tenth of a second");
	byte_rate_done(&r);
}

int main(void)
{
	struct loop loop;
	struct err  e;

	if (loop_open(&loop, &e) < 0)
		return EXIT_FAILURE;
	without_a_bound(&loop);
	with_one(&loop);
	slow_and_fast(&loop);
	loop_close(&loop);
	return tap_done();
}
