/*
 * loop.h - one thread that waits for many descriptors, and for moments.
 *
 * One event at a time: what an event frees cannot be named by another one of
 * the same batch, and epoll itself sees to it that everybody has a turn. Plain
 * files are refused by epoll (EPERM): their owner reads them at once.
 */
#pragma once
#include "err.h"

#include <sys/queue.h>

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

/* Lives as long as it is added. */
struct loop_source {
	int   fd;
	void  (*ready)(void *owner);
	void *owner;
};

must_use int loop_open(struct loop *ret, struct err *e);
void         loop_close(struct loop *l);
must_use int loop_add(struct loop *l, struct loop_source *source, struct err *e); /* for what can be read, and for the end */
/* events: EPOLLIN, EPOLLOUT, EPOLLRDHUP; 0: only the end and errors. */
must_use int loop_add_for(struct loop *l, struct loop_source *source, uint32_t events, struct err *e);
void         loop_want(struct loop *l, struct loop_source *source, uint32_t events); /* of one that was added */
void         loop_remove(struct loop *l, struct loop_source *source);
/* ms: negative waits for ever. Serves at most one source, and the timers that are due; 1 when there was a source. */
must_use int loop_turn(struct loop *l, int ms, struct err *e);

/* A timer is due once; set again it is moved. Zero the struct but for due and owner. */
int64_t loop_now_ms(void);
void    loop_timer_set(struct loop *l, struct loop_timer *t, int64_t in_ms);
void    loop_timer_clear(struct loop *l, struct loop_timer *t); /* may be called on one that is not set */
