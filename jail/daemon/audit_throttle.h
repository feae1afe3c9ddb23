/*
 * audit_throttle.h - refused attempts of one uid, so many a minute.
 *
 * A refusal costs its asker nothing. Without a bound, whoever may connect could
 * roll over the file, and the journal, with refusals until nothing else is in
 * them. Pure: the time comes from outside.
 */
#pragma once
#include "defs.h"

enum { AUDIT_REFUSALS = 120, AUDIT_UIDS = 64 };

struct audit_throttle {
	struct audit_refuser {
		int64_t  uid;
		int64_t  began_us;
		unsigned n;          /* told since then */
		uint64_t suppressed; /* not told since the last that was */
	} of[AUDIT_UIDS];
	size_t len;
};

/* Whether a refusal of this uid is to be told now; then *suppressed: how many were not, since the last one. */
bool audit_throttle_take(struct audit_throttle *t, int64_t uid, int64_t now_us, uint64_t *suppressed);
