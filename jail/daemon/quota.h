/*
 * quota.h - how much of the host one user, and all of them together, may have at once.
 *
 * Taken before a run is started, given back when it has ended. A quota that is
 * used up is answered with busy, and with a hint when to come again; a run that
 * is to wait for that does so in the queue (queue.h). A call in a session takes nothing but a start. Pure but for its memory; the
 * caller says what time it is.
 */
#pragma once
#include "denial.h"

enum { QUOTA_USERS_MAX = 1024, QUOTA_RETRY_MS = 100 /* nobody knows when a run ends; most are short */ };

/* 0: without bound */
struct quota_limits {
	uint64_t runs, memory_bytes, runs_per_minute;
	uint64_t sessions; /* of the runs, so many may be sessions */
	uint64_t contexts; /* of one session; this one has a bound always */
};

/* What one run takes of it. */
struct quota_part {
	uint64_t memory_bytes; /* its limit */
	bool     is_session;
};

struct quota_user {
	uint32_t uid;
	uint64_t runs, sessions, memory_bytes;
	double   asked_ms; /* for the last time */
	double   starts, since_ms; /* starts that are left of this minute's, at that moment */
};

struct quota {
	struct quota_limits all; /* of the host; runs_per_minute 0 */
	uint64_t            runs, memory_bytes;
	struct quota_user   user[QUOTA_USERS_MAX];
	size_t              n;
};

/* Whether such a run may be started now, memory_bytes 0: of any size; takes nothing. For what is cheaper to ask than the run is to read. */
must_use int quota_check(struct quota *q, const struct quota_limits *may, uint32_t uid, const struct quota_part *part, double now_ms,
			 struct denial *d);
/* The same of a call in a session; and that it was made. */
must_use int quota_check_call(struct quota *q, const struct quota_limits *may, uint32_t uid, double now_ms, struct denial *d);
void         quota_count_call(struct quota *q, const struct quota_limits *may, uint32_t uid);
/* Whether another user asked for a run within the last second. */
bool         quota_is_shared(const struct quota *q, uint32_t uid, double now_ms);
/* All or nothing. */
must_use int quota_take(struct quota *q, const struct quota_limits *may, uint32_t uid, const struct quota_part *part, double now_ms,
			struct denial *d);
void         quota_give(struct quota *q, uint32_t uid, const struct quota_part *part);
/* Of a run that was not started after all: it counts as no start either. */
void         quota_take_back(struct quota *q, uint32_t uid, const struct quota_part *part);
