/*
 * process.h - runs another program, and waits for its end.
 *
 * No shell is involved. The program gets its own pid, mount and IPC namespace:
 * when it ends, or the caller does, the kernel kills all that it has started.
 * It can change files in one directory only, whatever input it gets. When the
 * caller is not root, it also gets a user namespace in which it is root.
 *
 * Instead of a program, a function that reads untrusted input can be run. It
 * has descriptors 0, 1 and 2 and a copy of the caller's memory, and returns
 * results through memory that was shared before.
 */
#pragma once
#include "err.h"

struct process {
	const char *const *argv; /* argv[0] is looked up in the PATH of env, not in the caller's; absolute when the program is jailed */
	int (*run)(void *context); /* if not NULL, called instead of executing argv, which then is for messages; its result is the exit status */
	void *context;
	const char *const *env;  /* the whole environment */
	int                place; /* the directory that it may change; the program is killed when its file system is full */
	bool               jailed; /* place is its / as well, and it has no capability: for a program that is not trusted */
	bool               network; /* the host's network; else none */
	int                in, out; /* stdin; stdout and stderr together */
	int                stop; /* a signalfd, or -1: a signal that arrives there kills the program */
};

/* -1 unless the exit status is 0. errnum is ECANCELED after a signal on `stop`. */
must_use int process_run(const struct process *p, struct err *e);

/* -1 with kind LIMIT, errnum ECANCELED and the signal's name if the non-blocking signalfd has one; 0: it has none, or is -1. */
must_use int take_stop_signal(int stop, struct err *e);
