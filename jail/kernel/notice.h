/*
 * notice.h - hears that a program makes a socket of a network, and lets it go on
 *
 * The call waits until it was heard (filter_notice.h). Our own time is not
 * counted for the program: who asks all the time is answered slowly.
 */
#pragma once
#include "defs.h"

struct notice {
	int      listener_fd; /* -1: there is none, or the filter needs none */
	int      heard_fd;    /* the same, to be polled for reading; -1 while nobody is answered */
	bool     was_given;   /* a program had a socket of a network */
	uint32_t answers;     /* since the last rest */
	double   answered;    /* the last one; CLOCK_MONOTONIC ms */
};
#define NOTICE_NONE ((struct notice){ .listener_fd = -1, .heard_fd = -1 })

/* Before a poll that would wait for so many ms: how long it may. */
double notice_turn(struct notice *n, double wait);
/* One call that waits, if one does; or the end of all who could ask. */
void   notice_hear(struct notice *n);
void   notice_close(struct notice *n);
