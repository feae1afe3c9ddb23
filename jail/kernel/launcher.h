/*
 * launcher.h - the process that builds a cell, watches it and takes it down.
 *
 * Forked by run_start(), in a session of its own so that Ctrl-C reaches only
 * the client. Talks over one socket: see struct launch_word.
 */
#pragma once
#include "run.h"

enum launch_kind {
	LAUNCH_SLOT,    /* number: whoever survives knows what to clean */
	LAUNCH_STARTED, /* with the streams */
	LAUNCH_ENDED,   /* end */
};

struct launch_word {
	enum launch_kind kind;
	uint32_t         number;
	struct run_end   end;
};

/* From the client. */
struct launch_cancel {
	enum exit_reason reason;
};

struct watch;

/* The streams go to the client, and are closed here. */
void launcher_say_started(struct watch *w);

_Noreturn void launcher_main(const struct run_order *order, int sock, const struct timespec *asked);
