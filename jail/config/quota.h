/*
 * quota.h - how much of the host one user, and all of them together, may have at once.
 *
 * A run takes its part before it is started and gives it back when it has ended. When a
 * quota is used up, the answer is busy, with a hint when to try again; a run that wants
 * to wait does so in the queue (queue.h). A call in a session takes nothing but a start.
 * No system calls: the caller passes the time (CLOCK_MONOTONIC, ms).
 */
#pragma once
#include "denial.h"

enum { QUOTA_USERS_MAX = 1024, QUOTA_RETRY_MS = 100 /* when a run ends is not known; most are short */ };

/* 0: without bound */
struct quota_limits {
	uint64_t runs, memory_bytes, runs_per_minute;
	uint64_t sessions; /* so many of the runs may be sessions */
	uint64_t contexts; /* of one session; never 0 */
};

/* What one run takes of a quota. */
struct quota_part {
	uint64_t memory_bytes; /* its limit */
	bool     is_session;
};

struct quota_user {
	uint32_t uid;
	uint64_t runs, sessions, memory_bytes;
	double   asked_ms; /* when this user last asked for a run */
	double   starts, since_ms; /* a token bucket: the starts that were left at since_ms */
};

struct quota {
	struct quota_limits all; /* of the host; runs_per_minute 0 */
	uint64_t            runs, memory_bytes;
	struct quota_user   user[QUOTA_USERS_MAX];
	size_t              n;
};

/* Takes nothing: 0 if such a run may start now. memory_bytes 0: not known yet. A cheap check, to be made before the program is read. */
must_use int quota_check(struct quota *q, const struct quota_limits *limits, uint32_t uid, const struct quota_part *part, double now_ms,
			 struct denial *d);
/* The same for a call in a session; then, when the call was made, counts it as a start. */
must_use int quota_check_session_call(struct quota *q, const struct quota_limits *limits, uint32_t uid, double now_ms,
				      struct denial *d);
void         quota_count_session_call(struct quota *q, const struct quota_limits *limits, uint32_t uid);
/* Whether another user asked for a run within the last second. */
bool         quota_has_other_active_user(const struct quota *q, uint32_t uid, double now_ms);
/* Takes all of part, or nothing. */
must_use int quota_reserve(struct quota *q, const struct quota_limits *limits, uint32_t uid,
			   const struct quota_part *part, double now_ms, struct denial *d);
void         quota_release(struct quota *q, uint32_t uid, const struct quota_part *part);
/* Instead of quota_release(), for a run that was not started after all: its start is given back too. */
void         quota_refund(struct quota *q, uint32_t uid, const struct quota_part *part);
