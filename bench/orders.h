/*
 * orders.h - what a script that measures tells its clients, and what they answer.
 *
 *     paced ROUNDS PAUSE_US          one run after the other, on average so long after the end of the last one
 *     sustained SECONDS PARALLEL     so many at once, the next one when one has ended
 *
 * comes as a line on stdin. A line "KIND FIRST RECORD SETUP" in microseconds goes to
 * stdout for each run, -1 for what was not measured, then "cpu US" of the client's
 * own, "took US" and "done". Nothing is printed while something is measured. A
 * client that sees a wrong answer says so on stderr and ends: it has no figures.
 */
#pragma once
#include "defs.h"

struct figure {
	const char *kind; /* lives as long as the program */
	int64_t     first, record, setup; /* us */
};

struct figures {
	struct figure *row;
	size_t         n, room;
};

void figures_add(struct figures *f, struct figure row);

struct orders {
	void *self;
	int (*once)(void *self, struct figures *f);                                      /* 0, or -1 when it has said why not */
	int (*sustained)(void *self, int64_t until_us, unsigned parallel, struct figures *f); /* the same */
};

int64_t clock_us(void); /* CLOCK_MONOTONIC */

/* Until the end of stdin: the exit status. */
int orders_serve(const struct orders *o);
