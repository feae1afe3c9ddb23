#define _GNU_SOURCE
#include "loop.h"

#include "fd.h"

#include <errno.h>
#include <limits.h>
#include <sys/epoll.h>
#include <time.h>

int loop_open(struct loop *ret, struct err *e)
{
	TAILQ_INIT(&ret->timers);
	ret->fd = epoll_create1(EPOLL_CLOEXEC);
	return ret->fd < 0 ? err_sys(e, "epoll_create1") : 0;
}

void loop_close(struct loop *l)
{
	fd_closep(&l->fd);
}

int loop_add_events(struct loop *l, struct loop_source *source, uint32_t events, struct err *e)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(l->fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? err_sys(e, "epoll_ctl") : 0;
}

int loop_add(struct loop *l, struct loop_source *source, struct err *e)
{
	return loop_add_events(l, source, EPOLLIN, e);
}

void loop_set_events(struct loop *l, struct loop_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	(void)epoll_ctl(l->fd, EPOLL_CTL_MOD, source->fd, &event);
}

/* Call before the descriptor is closed: while another process holds the same open file, epoll would go on reporting it. */
void loop_remove(struct loop *l, struct loop_source *source)
{
	(void)epoll_ctl(l->fd, EPOLL_CTL_DEL, source->fd, NULL);
}

/* --- timers, sorted by time --- */

int64_t loop_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void loop_timer_clear(struct loop *l, struct loop_timer *t)
{
	if (t->set)
		TAILQ_REMOVE(&l->timers, t, link);
	t->set = false;
}

void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t in_ms)
{
	struct loop_timer *sooner;

	loop_timer_clear(l, t);
	t->at_ms = loop_now_ms() + in_ms;
	t->set   = true;
	TAILQ_FOREACH_REVERSE(sooner, &l->timers, loop_timers, link) /* most timers have the same length, so the place is near the end */
		if (sooner->at_ms <= t->at_ms)
			break;
	if (sooner)
		TAILQ_INSERT_AFTER(&l->timers, sooner, t, link);
	else
		TAILQ_INSERT_HEAD(&l->timers, t, link);
}

static int epoll_timeout_ms(const struct loop *l, int ms)
{
	const struct loop_timer *next = TAILQ_FIRST(&l->timers);
	int64_t                  left;

	if (!next)
		return ms;
	left = next->at_ms - loop_now_ms();
	if (left < 0)
		left = 0;
	if (left > INT_MAX)
		left = INT_MAX;
	return ms >= 0 && ms < left ? ms : (int)left;
}

/* A due() that sets its own timer to a moment that has come would be called again at once, and starve the sources: no caller does that. */
static void call_due_timers(struct loop *l)
{
	int64_t            now = loop_now_ms();
	struct loop_timer *t;

	while ((t = TAILQ_FIRST(&l->timers)) && t->at_ms <= now) {
		loop_timer_clear(l, t);
		t->due(t->owner);
	}
}

int loop_turn(struct loop *l, int ms, struct err *e)
{
	struct epoll_event event;
	int                n = epoll_wait(l->fd, &event, 1, epoll_timeout_ms(l, ms));

	if (n < 0 && errno != EINTR)
		return err_sys(e, "epoll_wait");
	if (n > 0) {
		struct loop_source *source = event.data.ptr;

		source->ready(source->owner);
	}
	call_due_timers(l);
	return n > 0;
}

int loop_run(struct loop *l, const bool *ends, struct err *e)
{
	while (!*ends)
		if (loop_turn(l, -1, e) < 0)
			return -1;
	return 0;
}
