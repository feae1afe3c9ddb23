#include "audit_throttle.h"

#define MINUTE 60000000ll

static bool is_minute_over(const struct audit_refuser *row, int64_t now_us)
{
	return now_us < row->began_us || now_us - row->began_us >= MINUTE; /* the clock may have been put back */
}

/*
 * Whether another uid takes over a before b. The uid that loses its row starts again from 0: when its minute is over,
 * it loses only its count of suppressed refusals; while it is suppressed, its refusals would be written again.
 */
static bool is_replaced_before(const struct audit_refuser *a, const struct audit_refuser *b, int64_t now_us)
{
	if (is_minute_over(a, now_us) != is_minute_over(b, now_us))
		return is_minute_over(a, now_us);
	return a->n != b->n ? a->n < b->n : a->began_us < b->began_us;
}

/* The row of this uid; else a free one; else the one that is lost soonest. */
static struct audit_refuser *find_or_take_row(struct audit_throttle *t, int64_t uid, int64_t now_us)
{
	struct audit_refuser *first = &t->of[0], *row;

	for (row = t->of; row < t->of + t->len; row++) {
		if (row->uid == uid)
			return row;
		if (is_replaced_before(row, first, now_us))
			first = row;
	}
	if (t->len < ARRAY_LEN(t->of))
		first = &t->of[t->len++];
	*first = (struct audit_refuser){ .uid = uid, .began_us = now_us };
	return first;
}

bool audit_throttle_allows(struct audit_throttle *t, int64_t uid, int64_t now_us, unsigned most, uint64_t *suppressed)
{
	struct audit_refuser *row = find_or_take_row(t, uid, now_us);

	if (is_minute_over(row, now_us)) {
		row->began_us = now_us;
		row->n        = 0;
	}
	if (row->n >= most) {
		row->suppressed++;
		return false;
	}
	row->n++;
	*suppressed     = row->suppressed;
	row->suppressed = 0;
	return true;
}
