#include "audit_throttle.h"

#define MINUTE 60000000ll

/* The row of this uid; else a free one; else the one whose minute began first: its count of suppressed refusals is lost. */
static struct audit_refuser *row_of(struct audit_throttle *t, int64_t uid, int64_t now_us)
{
	struct audit_refuser *oldest = &t->of[0], *row;

	for (row = t->of; row < t->of + t->len; row++) {
		if (row->uid == uid)
			return row;
		if (row->began_us < oldest->began_us)
			oldest = row;
	}
	if (t->len < ARRAY_LEN(t->of))
		oldest = &t->of[t->len++];
	*oldest = (struct audit_refuser){ .uid = uid, .began_us = now_us };
	return oldest;
}

bool audit_throttle_take(struct audit_throttle *t, int64_t uid, int64_t now_us, uint64_t *suppressed)
{
	struct audit_refuser *row = row_of(t, uid, now_us);

	if (now_us < row->began_us || now_us - row->began_us >= MINUTE) { /* the clock may have been put back */
		row->began_us = now_us;
		row->n        = 0;
	}
	if (row->n == AUDIT_REFUSALS) {
		row->suppressed++;
		return false;
	}
	row->n++;
	*suppressed     = row->suppressed;
	row->suppressed = 0;
	return true;
}
