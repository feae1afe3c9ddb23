/*
 * loop.h - one thread that waits for many descriptors.
 *
 * One event at a time: what an event frees cannot be named by another one of
 * the same batch, and epoll itself sees to it that everybody has a turn.
 */
#pragma once
#include "err.h"

struct loop {
	int fd;
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
void         loop_remove(struct loop *l, struct loop_source *source);
/* ms: negative waits for ever. Serves at most one source. */
must_use int loop_turn(struct loop *l, int ms, struct err *e);
