#include "quota.h"
#include "tap.h"

static struct quota q;

static void begin(uint64_t all_runs, uint64_t all_memory)
{
	q = (struct quota){ .all = { .runs = all_runs, .memory_bytes = all_memory } };
}

/* The code, or -1 for yes. */
static int take(const struct quota_limits *may, uint32_t uid, uint64_t memory, double now, uint64_t *retry_ms)
{
	struct denial           d    = { 0 };
	const struct quota_part part = { .memory_bytes = memory };

	if (quota_reserve(&q, may, uid, &part, now, &d) == 0)
		return -1;
	if (retry_ms)
		*retry_ms = d.retry_after_ms;
	return (int)d.code;
}

static void give(uint32_t uid, uint64_t memory)
{
	quota_release(&q, uid, &(struct quota_part){ .memory_bytes = memory });
}

static void check_runs(void)
{
	const struct quota_limits two = { .runs = 2 };
	uint64_t                  retry;

	begin(3, 0);
	tap_ok(take(&two, 7, 1, 0, NULL) < 0 && take(&two, 7, 1, 0, NULL) < 0, "a user gets as many runs as he may have");
	tap_ok(take(&two, 7, 1, 0, &retry) == DENIAL_busy && retry > 0, "one more is busy, and says when to come again");
	tap_ok(take(&two, 8, 1, 0, NULL) < 0, "another user has his own quota");
	tap_ok(take(&two, 9, 1, 0, NULL) == DENIAL_busy, "the host's quota is everybody's");
	give(7, 1);
	tap_ok(take(&two, 9, 1, 0, NULL) < 0, "what was given back can be taken by another");
	tap_ok(q.runs == 3, "a refused run takes nothing");
}

static void check_memory(void)
{
	const struct quota_limits much = { .memory_bytes = 100 };

	begin(0, 150);
	tap_ok(take(&much, 7, 60, 0, NULL) < 0, "memory is counted by the limits of runs");
	tap_ok(take(&much, 7, 41, 0, NULL) == DENIAL_busy, "the sum may not be above the quota");
	tap_ok(take(&much, 7, 40, 0, NULL) < 0, "it may be all of it");
	tap_ok(take(&much, 8, 51, 0, NULL) == DENIAL_busy, "the host's memory is everybody's");
	tap_ok(take(&much, 8, 101, 0, NULL) == DENIAL_denied, "what will never fit is no matter of time");
	tap_ok(take(&much, 8, UINT64_MAX, 0, NULL) == DENIAL_denied, "nor is a sum that would wrap around");
	give(7, 60);
	give(7, 40);
	tap_ok(q.memory_bytes == 0 && q.runs == 0, "what ended counts no more");
}

static void check_rate(void)
{
	const struct quota_limits slow = { .runs_per_minute = 60 }, quick = { .runs_per_minute = 6000 }, some = { .runs_per_minute = 300 };
	uint64_t                  retry = 0;
	int                       n     = 0;

	begin(0, 0);
	while (take(&slow, 7, 1, 1000, &retry) < 0)
		n++;
	tap_ok(n == 60, "a minute's runs may come at once");
	tap_ok(retry >= 1000 && retry <= 1001, "then each has to wait for its share of the minute");
	tap_ok(take(&slow, 7, 1, 1500, NULL) == DENIAL_busy, "half of it is too early");
	tap_ok(take(&slow, 7, 1, 2001, NULL) < 0, "all of it is enough");
	tap_ok(take(&slow, 7, 1, 2002, NULL) == DENIAL_busy, "for one");
	for (n = 0; take(&quick, 8, 1, 1000, &retry) < 0;)
		n++;
	tap_ok(n == 1000 && retry >= 100 && retry <= 101, "of many, ten seconds' may come at once; none is told to come again within a run's time");
	quota_refund(&q, 8, &(struct quota_part){ .memory_bytes = 1 });
	tap_ok(take(&quick, 8, 1, 1000, NULL) < 0, "a run that was not started after all counts as no start");
	for (n = 0; take(&some, 9, 1, 1000, NULL) < 0;)
		n++;
	tap_ok(n == 100, "of some, a hundred");
}

static void check_sessions(void)
{
	const struct quota_limits one     = { .runs = 2, .sessions = 1 };
	const struct quota_part   session = { .memory_bytes = 1, .is_session = true };
	struct denial             d       = { 0 };

	begin(0, 0);
	tap_ok(quota_reserve(&q, &one, 7, &session, 0, &d) == 0, "a user gets as many sessions as allowed");
	tap_ok(quota_check(&q, &one, 7, &session, 0, &d) < 0 && d.code == DENIAL_busy && d.retry_after_ms > 0, "one more is busy");
	tap_is(d.text, "1 sessions at once: your quota is used up; close one, or wait until one has ended", "which says what to do");
	tap_ok(take(&one, 7, 1, 0, NULL) < 0 && take(&one, 7, 1, 0, NULL) == DENIAL_busy, "a session is one of the runs");
	quota_release(&q, 7, &session);
	tap_ok(quota_reserve(&q, &one, 7, &session, 0, &d) == 0, "one that ended makes room");
}

static void check_calls(void)
{
	const struct quota_limits few = { .runs_per_minute = 3 }, any = { 0 };
	struct denial             d   = { 0 };
	int                       n   = 0;

	begin(0, 0);
	while (n < 10 && quota_check_session_call(&q, &few, 7, 0, &d) == 0) {
		quota_count_session_call(&q, &few, 7);
		n++;
	}
	tap_ok(n == 3 && d.code == DENIAL_busy && d.retry_after_ms == 20001, "calls begin at the rate of runs");
	tap_ok(take(&few, 7, 1, 0, NULL) == DENIAL_busy, "and are counted with them");
	tap_ok(quota_check_session_call(&q, &few, 7, 20000, &d) == 0 && quota_check_session_call(&q, &few, 7, 20000, &d) == 0, "one that is refused for another reason is not counted");
	for (n = 0; n < 10000 && quota_check_session_call(&q, &any, 8, 0, &d) == 0; n++)
		quota_count_session_call(&q, &any, 8);
	tap_ok(n == 10000, "without a limit there is none for calls");
}

static void check_users(void)
{
	const struct quota_limits one = { .runs = 1, .runs_per_minute = 1 };
	int                       no  = 0;

	begin(0, 0);
	for (uint32_t uid = 0; uid < QUOTA_USERS_MAX; uid++)
		no += take(&one, uid, 1, 0, NULL) >= 0;
	tap_ok(no == 0, "there is room for many users");
	tap_ok(take(&one, 70000, 1, 0, NULL) == DENIAL_busy, "and an answer when there is none");
	give(5, 1);
	tap_ok(take(&one, 70000, 1, 59000, NULL) == DENIAL_busy, "who was here within a minute is not forgotten");
	tap_ok(take(&one, 70000, 1, 61000, NULL) < 0, "who was not makes room");
}

int main(void)
{
	check_runs();
	check_memory();
	check_rate();
	check_sessions();
	check_calls();
	check_users();
	return tap_done();
}
