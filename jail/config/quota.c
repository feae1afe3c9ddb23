#include "quota.h"

#include "text.h"

#include <inttypes.h>
#include <stdio.h>

#define MINUTE_MS 60000.0
#define SHARED_MS 1000.0

static struct quota_user *quota_user_find(struct quota *q, uint32_t uid)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->user[i].uid == uid)
			return &q->user[i];
	return NULL;
}

/* The size of the bucket: the starts of ten seconds, but at least 100, and at most those of a minute. */
static double start_burst_of_rate(uint64_t per_minute)
{
	return per_minute > 600 ? (double)per_minute / 6 : per_minute > 100 ? 100 : (double)per_minute;
}

static struct quota_user *quota_user_find_or_add(struct quota *q, const struct quota_limits *limits, uint32_t uid,
						 double now_ms)
{
	struct quota_user *u = quota_user_find(q, uid);

	if (u)
		return u;
	if (q->n < QUOTA_USERS_MAX)
		u = &q->user[q->n++];
	/* A user that has no run and asked for none within a minute is forgotten: the bucket is full again. */
	for (size_t i = 0; !u && i < q->n; i++)
		if (q->user[i].runs == 0 && now_ms - q->user[i].since_ms > MINUTE_MS)
			u = &q->user[i];
	if (u)
		*u = (struct quota_user){ .uid = uid, .starts = start_burst_of_rate(limits->runs_per_minute), .since_ms = now_ms };
	return u;
}

/* Clients that wait try again all at once: so the hint is never less than QUOTA_RETRY_MS. */
static int deny_busy(struct denial *d, double retry_ms, const char *what, const char *much, const char *whose)
{
	deny(d, DENIAL_busy, NULL, "%s%s: %s", much, what, whose);
	d->retry_after_ms = retry_ms < QUOTA_RETRY_MS ? QUOTA_RETRY_MS : (uint64_t)retry_ms + 1;
	return -1;
}

static int check_runs_and_memory(const struct quota_limits *limits, uint64_t runs, uint64_t memory, uint64_t more,
				 const char *whose, struct denial *d)
{
	char text[32];

	if (limits->runs && runs >= limits->runs) {
		snprintf(text, sizeof text, "%" PRIu64, limits->runs);
		return deny_busy(d, QUOTA_RETRY_MS, " runs at once", text, whose);
	}
	if (limits->memory_bytes && (more > limits->memory_bytes || memory > limits->memory_bytes - more))
		return deny_busy(d, QUOTA_RETRY_MS, " of memory for all runs together",
				 text_from_size(limits->memory_bytes, text, sizeof text),
				 whose);
	return 0;
}

/* A run that needs more than the whole quota will not fit later either: denied, not busy. */
static int check_fits_whole_quota(const struct quota_limits *limits, uint64_t memory, const char *whose,
				  struct denial *d)
{
	char text[32];

	if (!limits->memory_bytes || memory <= limits->memory_bytes)
		return 0;
	return deny(d, DENIAL_denied, "limits.memory_bytes", "%s has %s of memory for all runs together", whose,
		    text_from_size(limits->memory_bytes, text, sizeof text));
}

static int check_start_rate(struct quota_user *u, uint64_t per_minute, double now_ms, struct denial *d)
{
	double most = start_burst_of_rate(per_minute),
		now = u->starts + (now_ms - u->since_ms) * (double)per_minute / MINUTE_MS;
	char   text[32];

	u->since_ms = now_ms;
	u->starts   = now > most ? most : now;
	if (per_minute == 0 || u->starts >= 1)
		return 0;
	snprintf(text, sizeof text, "%" PRIu64, per_minute);
	return deny_busy(d, (1 - u->starts) * MINUTE_MS / (double)per_minute, " runs and calls a minute", text,
			 "your quota is used up");
}

static int deny_too_many_users(struct denial *d)
{
	return deny_busy(d, MINUTE_MS, " users at once", "1024", "the quota of this host is used up");
}

static int check_quotas(struct quota *q, const struct quota_limits *limits, struct quota_user *u,
			const struct quota_part *part, double now_ms, struct denial *d)
{
	char text[32];

	if (part->is_session && limits->sessions && u->sessions >= limits->sessions) {
		snprintf(text, sizeof text, "%" PRIu64, limits->sessions);
		return deny_busy(d, QUOTA_RETRY_MS, " sessions at once", text,
				 "your quota is used up; close one, or wait until one has ended");
	}
	if (check_runs_and_memory(limits, u->runs, u->memory_bytes, part->memory_bytes, "your quota is used up",
				  d) < 0 ||
	    check_runs_and_memory(&q->all, q->runs, q->memory_bytes, part->memory_bytes,
				  "the quota of this host is used up", d) < 0)
		return -1;
	return check_start_rate(u, limits->runs_per_minute, now_ms, d);
}

int quota_check(struct quota *q, const struct quota_limits *limits, uint32_t uid, const struct quota_part *part, double now_ms,
		struct denial *d)
{
	struct quota_user *u = quota_user_find_or_add(q, limits, uid, now_ms);

	if (!u)
		return deny_too_many_users(d);
	u->asked_ms = now_ms;
	return check_quotas(q, limits, u, part, now_ms, d);
}

int quota_check_session_call(struct quota *q, const struct quota_limits *limits, uint32_t uid, double now_ms,
			     struct denial *d)
{
	struct quota_user *u = quota_user_find_or_add(q, limits, uid, now_ms);

	return u ? check_start_rate(u, limits->runs_per_minute, now_ms, d) : deny_too_many_users(d);
}

static void spend_start(struct quota_user *u, const struct quota_limits *limits)
{
	if (limits->runs_per_minute)
		u->starts -= 1;
}

void quota_count_session_call(struct quota *q, const struct quota_limits *limits, uint32_t uid)
{
	struct quota_user *u = quota_user_find(q, uid);

	if (u)
		spend_start(u, limits);
}

bool quota_has_other_active_user(const struct quota *q, uint32_t uid, double now_ms)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->user[i].uid != uid && now_ms - q->user[i].asked_ms < SHARED_MS)
			return true;
	return false;
}

int quota_reserve(struct quota *q, const struct quota_limits *limits, uint32_t uid, const struct quota_part *part,
		  double now_ms, struct denial *d)
{
	struct quota_user *u = quota_user_find_or_add(q, limits, uid, now_ms);

	if (!u)
		return deny_too_many_users(d);
	if (check_fits_whole_quota(limits, part->memory_bytes, "your quota", d) < 0 ||
	    check_fits_whole_quota(&q->all, part->memory_bytes, "this host", d) < 0)
		return -1;
	if (check_quotas(q, limits, u, part, now_ms, d) < 0)
		return -1;
	spend_start(u, limits);
	u->runs++;
	u->sessions += part->is_session;
	u->memory_bytes += part->memory_bytes;
	q->runs++;
	q->memory_bytes += part->memory_bytes;
	return 0;
}

void quota_refund(struct quota *q, uint32_t uid, const struct quota_part *part)
{
	struct quota_user *u = quota_user_find(q, uid);

	quota_release(q, uid, part);
	if (u)
		u->starts += 1;
}

void quota_release(struct quota *q, uint32_t uid, const struct quota_part *part)
{
	struct quota_user *u = quota_user_find(q, uid);

	if (!u)
		return;
	u->runs--;
	u->sessions -= part->is_session;
	u->memory_bytes -= part->memory_bytes;
	q->runs--;
	q->memory_bytes -= part->memory_bytes;
}
