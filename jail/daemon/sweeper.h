/*
 * sweeper.h - removes the socket's file when the service is gone, however it ended.
 *
 * The door has no right to the folder any more, and a socket file without a service
 * would keep brig(1) from starting a private brigd. So a small process waits, with the
 * ids that the service was started with, no capability, and four system calls; it takes
 * no input.
 */
#pragma once
#include "listener.h"

#include <sys/types.h>

struct sweeper {
	int   lifeline; /* the service's end of a pipe: when it is closed, the sweeper acts */
	pid_t pid;
};
#define SWEEPER_NONE ((struct sweeper){ .lifeline = -1 })

/* For a socket of our own; systemd removes its own. Called before separate(). */
must_use int sweeper_start(struct sweeper *ret, const struct listener *l, struct err *e);
/* Waits until the file is gone. */
void         sweeper_end(struct sweeper *s);
