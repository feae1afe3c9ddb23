/*
 * deadline.h - moments by which thousands of connections must have gone on
 *
 * Each kind has one length, so each list is in order by itself: setting and
 * clearing cost the same however many there are. They are looked at twice a second.
 */
#pragma once
#include "loop.h"

enum deadline_kind {
	DEADLINE_SAY,   /* what it wants */
	DEADLINE_DIAL,  /* a name and a connection, together */
	DEADLINE_TRY,   /* one address of several */
	DEADLINE_IDLE,  /* without a byte in either direction */
	DEADLINE_HALF,  /* the same, of a program that said its end */
	DEADLINE_LEAVE, /* to read a refusal */
	DEADLINE_KINDS,
};

struct deadline {
	TAILQ_ENTRY(deadline) link;
	enum deadline_kind kind;
	bool               set;
	int64_t            at_ms;
	void (*due)(void *owner);
	void *owner;
};

struct deadlines {
	struct loop      *loop;
	struct loop_timer tick;
	TAILQ_HEAD(deadline_list, deadline) list[DEADLINE_KINDS];
};

void deadlines_init(struct deadlines *all, struct loop *loop);
/* One that is set is moved. Zero the struct but for due and owner. */
void deadline_set(struct deadlines *all, struct deadline *d, enum deadline_kind kind);
void deadline_clear(struct deadlines *all, struct deadline *d);
