/*
 * notice.h - answers the calls for which a filter notifies the listener (filter_notice.h)
 *
 * What the compiled filter refuses is refused with the same errno, and counted;
 * what it allows, a socket of a network, continues. The answer depends on the call
 * number and the registers, which the kernel copies: never on memory, which other
 * threads can change. The CPU time of the process that answers is not charged to the program, so
 * many calls in a row are answered slowly. When it dies, the kernel
 * answers ENOSYS.
 */
#pragma once
#include "refused_call.h"

struct notice {
	int      listener_fd; /* -1: there is none, or the filter needs none */
	int      heard_fd;    /* the same, to be polled for reading; -1 while nobody is answered */
	bool     was_given;   /* a program had a socket of a network */
	uint32_t answers;     /* since the last rest */
	uint32_t crowd;       /* so many programs are answered by the same process just now: all together get the answers of one. 0: as 1 */
	double   answered;    /* the last one; CLOCK_MONOTONIC ms */
};
#define NOTICE_NONE ((struct notice){ .listener_fd = -1, .heard_fd = -1 })

/* Before a poll that would wait for so many ms: how long it may. */
double notice_turn(struct notice *n, double wait);
/* Answers one waiting call, if there is one, as `filter` does; or closes the listener when every process under the filter is gone. */
void   notice_hear(struct notice *n, const struct sock_fprog *filter, struct refused_calls *refused);
void   notice_close(struct notice *n);
