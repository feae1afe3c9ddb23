/*
 * guest_runner.h - the guest runner: its path in a rootfs, its arguments, and its descriptors
 *
 *   python3 -I RUNNER MODE FD[,TOOLS] IMPORTS MODULES CALLS --MAIN ARG...
 *
 * MAIN is the program's path below its working directory, /workspace; empty for
 * main.py. If the working directory is another one, MAIN begins with "/workspace/".
 * IMPORTS (modules that may be imported at run time) and MODULES (modules that the
 * static check allows) are separated by commas; "*" is any. CALLS, about which the
 * check warns, may be empty. None of this is a security boundary: the program has
 * full control over its runner.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define GUEST_RUNNER_PATH "usr/lib/brig/guest.pyc" /* below the root */

enum {
	GUEST_RUNNER_FD       = 5, /* the runner writes its report here; 0 to 2 are the program's */
	TOOLS_FD              = 4, /* the bridge, if the program has tools */
	GUEST_RUNNER_ARGS_MAX = 9,
};

struct guest_runner_lists {
	const json_t *imports, *modules, *calls; /* lists of texts without commas; NULL: not set */
	const char   *main;                      /* NULL: main.py */
	bool          tools;
};

struct guest_runner_args {
	const char *arg[GUEST_RUNNER_ARGS_MAX + 1]; /* NULL at the end */
	char        fd[8];
	char       *list[4]; /* heap; `word` points to them */
};

/* *ret must not be moved afterwards: its words point into it. Call guest_runner_args_done() after a failure, too. */
must_use int guest_runner_args_build(struct guest_runner_args *ret, const char *mode, const struct guest_runner_lists *lists, struct err *e);
void         guest_runner_args_done(struct guest_runner_args *w);
#define scoped_guest_runner_args scoped(guest_runner_args_done) struct guest_runner_args
