/*
 * progress.h - shows on a terminal which stage a build is in and for how long, updated each second
 *
 * The next output overwrites the line. Only one may be shown at a time. Nothing is printed if stderr is not a terminal.
 */
#pragma once
#include <pthread.h>
#include <stdbool.h>

struct progress {
	const char *stage;
	unsigned    number, of;
	bool        is_on;
	pthread_t   clock;
	int         end[2]; /* a pipe: its end of file ends the thread */
};

void progress_start(struct progress *p, const char *stage, unsigned number, unsigned of);
/* Erases the line. */
void progress_stop(struct progress *p);
