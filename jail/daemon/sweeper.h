/*
 * sweeper.h - removes the socket's file and the service's control groups when the service is gone, however it ended.
 *
 * The server has no right to these folders any more, and a socket file without a service
 * would keep brig(1) from starting a private brigd. So a small process waits, with the
 * ids that the service was started with, no capability, and six system calls; it takes
 * no input but the groups, while brigd still has the rights that it was started with.
 * The groups go last, when no process is left in them: the sweeper was forked before
 * they were made, so it is in none.
 */
#pragma once
#include "cg_give.h"
#include "listener.h"

struct sweeper {
	int lifeline; /* the service's end of a socket: when it is closed, the sweeper acts; -1: there is no sweeper */
};
#define SWEEPER_NONE ((struct sweeper){ -1 })

/* For a socket of our own; systemd removes its own. Called before separate_processes(). */
must_use int sweeper_start(struct sweeper *ret, const struct listener *l, struct err *e);
/* Once, in any case: the sweeper locks itself up when it has them. */
must_use int sweeper_send_groups(const struct sweeper *s, const struct cg_given *groups, struct err *e);
/* Waits until the file is gone. The sweeper ends a moment after the last process of the service. */
void         sweeper_close_and_wait(struct sweeper *s);
