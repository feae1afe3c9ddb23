/*
 * sweeper.h - removes the socket's file when the service is gone, however it went.
 *
 * The door may not: it has no right to the folder any more. A file behind which
 * nobody answers would keep brig(1) from a private brigd. So a small process
 * waits, with the ids that the service was started with, no capability, and
 * four system calls left; it reads nothing from anybody.
 */
#pragma once
#include "listener.h"

#include <sys/types.h>

struct sweeper {
	int   lifeline; /* its end of file is the signal */
	pid_t pid;
};
#define SWEEPER_NONE ((struct sweeper){ .lifeline = -1 })

/* For a socket of our own; systemd sweeps its. Before privilege is parted with. */
must_use int sweeper_start(struct sweeper *ret, const struct listener *l, struct err *e);
/* Waits until the file is gone. */
void         sweeper_end(struct sweeper *s);
