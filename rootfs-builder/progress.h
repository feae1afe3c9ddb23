/*
 * progress.h - in a terminal: which stage a build is in and for how long, each second anew
 *
 * The line is drawn over by what is printed next. One at a time; elsewhere than in a terminal nothing is printed.
 */
#pragma once
#include <pthread.h>
#include <stdbool.h>

struct progress {
	const char *stage;
	unsigned    number, of;
	bool        is_on;
	pthread_t   clock;
	int         end[2]; /* a pipe: its end ends the clock */
};

void progress_begin(struct progress *p, const char *stage, unsigned number, unsigned of);
/* The line is gone. */
void progress_end(struct progress *p);
