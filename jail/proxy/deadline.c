#include "deadline.h"

enum { TICK_MS = 500 };

/* clang-format off */
static const int64_t length_ms[DEADLINE_KINDS] = {
	[DEADLINE_REQUEST]   = 10 * 1000,
	[DEADLINE_DIAL]  = 10 * 1000,
	[DEADLINE_TRY]   = 3 * 1000,
	[DEADLINE_IDLE]  = 60 * 60 * 1000, /* long: open connections count against the bound of their own run only */
	[DEADLINE_KEPT]  = 3 * 1000, /* short: it holds two sockets, and a program may wait for end of file */
	[DEADLINE_HALF]  = 30 * 1000, /* the program is most likely gone, which only a write to it would show */
	[DEADLINE_DRAIN] = 2 * 1000,
	[DEADLINE_HELD]  = 500,
};
/* clang-format on */

static void call_expired_deadlines(void *owner)
{
	struct deadlines *all  = owner;
	int64_t           now  = loop_now_ms();
	bool              more = false;
	struct deadline  *d;

	for (int kind = 0; kind < DEADLINE_KINDS; kind++) {
		while ((d = TAILQ_FIRST(&all->list[kind])) && d->at_ms <= now) {
			deadline_clear(all, d);
			d->due(d->owner);
		}
		more |= d != NULL;
	}
	if (more)
		loop_timer_set(all->loop, &all->tick, TICK_MS);
}

void deadlines_init(struct deadlines *all, struct loop *loop)
{
	all->loop = loop;
	all->tick = (struct loop_timer){ .due = call_expired_deadlines, .owner = all };
	for (int kind = 0; kind < DEADLINE_KINDS; kind++)
		TAILQ_INIT(&all->list[kind]);
}

void deadline_set(struct deadlines *all, struct deadline *d, enum deadline_kind kind)
{
	deadline_clear(all, d);
	d->kind  = kind;
	d->at_ms = loop_now_ms() + length_ms[kind];
	d->set   = true;
	TAILQ_INSERT_TAIL(&all->list[kind], d, link);
	if (!all->tick.set)
		loop_timer_set(all->loop, &all->tick, TICK_MS);
}

void deadline_clear(struct deadlines *all, struct deadline *d)
{
	if (d->set)
		TAILQ_REMOVE(&all->list[d->kind], d, link);
	d->set = false;
}
