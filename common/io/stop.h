/*
 * stop.h - SIGTERM, SIGINT and SIGHUP end the server: they become an event of the loop.
 */
#pragma once
#include "loop.h"

struct stop {
	struct loop       *loop;
	struct loop_source source;
	void             (*asked)(void *owner);
	void              *owner;
};

/* Also ignores SIGPIPE and SIGXFSZ. s must not move. */
must_use int stop_open(struct stop *s, struct loop *loop, void (*asked)(void *owner), void *owner, struct err *e);
void         stop_close(struct stop *s);
