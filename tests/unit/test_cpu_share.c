/* test_cpu_share.c - for how long a run waits for brig-proxy after what it has used */
#include "cpu_share.h"
#include "tap.h"

static const int64_t ms = 1000 * 1000;

/* A run that always has events, for a minute, a millisecond of work at a time. Returns the milliseconds of work. */
static int64_t worked(uint64_t milli)
{
	struct cpu_share s;
	int64_t          now = 0, work = 0;

	cpu_share_init(&s, now);
	while (now < 60 * 1000 * ms) {
		now += ms;
		work++;
		now += cpu_share_spend(&s, milli, now, ms) * ms;
	}
	return work;
}

static void one_that_floods(void)
{
	tap_ok(worked(1000) == 60 * 1000, "a whole processor never waits");
	tap_ok(cpu_share_for_runs(4000, 1) == 1000,
	       "brig-proxy has one thread, and a run that is alone gets all of it");
	tap_ok(cpu_share_for_runs(4000, 2) == 250 && cpu_share_for_runs(4000, 100) == 250,
	       "beside others it gets a quarter");
	tap_ok(cpu_share_for_runs(100, 1) == 100 && cpu_share_for_runs(100, 2) == 100,
	       "no run gets more than its own limit");
	tap_ok(worked(250) >= 12 * 1000 && worked(250) <= 15 * 1000 + 100, "a quarter is a quarter of the time, and the burst");
	tap_ok(worked(10) <= 600 + 100, "a hundredth is a hundredth of it");
}

static void one_that_rests(void)
{
	struct cpu_share s;

	cpu_share_init(&s, 0);
	tap_ok(cpu_share_spend(&s, 250, 40 * ms, 40 * ms) == 0, "a burst does not wait");
	tap_ok(cpu_share_spend(&s, 250, 80 * ms, 40 * ms) > 0, "two in a row do");
	tap_ok(cpu_share_spend(&s, 250, 3600 * 1000 * ms, 50 * ms) == 0 && cpu_share_spend(&s, 250, 3600 * 1000 * ms, 4 * ms) == 17,
	       "an hour of rest is worth one burst, and a debt is paid to the end");
	tap_ok(cpu_share_spend(&s, 1000, 3600 * 1000 * ms, 0) == 0 && s.left_ns == 0, "a run that becomes the only one waits for no debt");
}

int main(void)
{
	one_that_floods();
	one_that_rests();
	return tap_done();
}
