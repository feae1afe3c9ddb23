/*
 * notice.h - answers the calls of a program that its filter tells of (filter_notice.h)
 *
 * What the compiled filter refuses is refused with the same errno, and counted;
 * what it allows, a socket of a network, goes on. Numbers and registers decide,
 * which the kernel hands over: never memory, which other threads can change.
 * Our own time is not counted for the program: one that asks all the time is
 * answered slowly. When we die the kernel answers ENOSYS.
 */
#pragma once
#include "refused_call.h"

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
/* One call that waits, if one does, answered as `filter` says; or the end of all who could ask. */
void   notice_hear(struct notice *n, const struct sock_fprog *filter, struct refused_calls *refused);
void   notice_close(struct notice *n);
