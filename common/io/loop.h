/*
 * loop.h - one thread that waits for many descriptors and timers.
 *
 * epoll_wait() is asked for one event at a time: a handler may free any source,
 * and no event of the same batch can still point to it. The kernel's ready list
 * rotates, so that every source is served. epoll refuses regular files (EPERM):
 * their owner reads them at once.
 */
#pragma once
#include "err.h"
#include "linked_list.h"

struct loop_timer {
	TAILQ_ENTRY(loop_timer) link;
	int64_t at_ms;            /* CLOCK_MONOTONIC */
	bool    set;
	void  (*due)(void *owner);
	void   *owner;
};

struct loop {
	int fd;
	TAILQ_HEAD(loop_timers, loop_timer) timers; /* the next one first */
};

/* Memory of the caller, which must stay valid until loop_remove(). */
struct loop_source {
	int   fd;
	void  (*ready)(void *owner);
	void *owner;
};

must_use int loop_open(struct loop *ret, struct err *e);
void         loop_close(struct loop *l);
must_use int loop_add(struct loop *l, struct loop_source *source, struct err *e); /* waits for EPOLLIN */
/* events: EPOLLIN, EPOLLOUT, EPOLLRDHUP; 0: only EPOLLHUP and EPOLLERR. */
must_use int loop_add_events(struct loop *l, struct loop_source *source, uint32_t events, struct err *e);
void         loop_set_events(struct loop *l, struct loop_source *source, uint32_t events); /* changes the events of an added source */
void         loop_remove(struct loop *l, struct loop_source *source);
/* Waits at most ms (negative: for ever). Serves at most one source, then the timers that are due. 1: a source was served; 0: none; -1 with *e. */
must_use int loop_turn(struct loop *l, int ms, struct err *e);
must_use int loop_run(struct loop *l, const bool *ends, struct err *e); /* until *ends is set */

/* A timer is due once; setting it again moves it. The caller fills in due and owner, and zeroes the rest. */
int64_t loop_now_ms(void);
void    loop_timer_set(struct loop *l, struct loop_timer *t, int64_t in_ms);
void    loop_timer_clear(struct loop *l, struct loop_timer *t); /* may be called on one that is not set */
