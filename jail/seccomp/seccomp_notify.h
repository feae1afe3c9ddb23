/*
 * seccomp_notify.h - answers the calls for which a filter notifies the listener (filter_notice.h)
 *
 * A call that the compiled filter refuses is refused with the same errno, and counted;
 * a call that it allows, the creation of a network socket, continues. The answer depends
 * on the call number and the registers, which the kernel has copied, and never on memory,
 * which other threads can change. The CPU time of the process that answers is not charged
 * to the program, so many calls in a row are answered slowly. If that process dies, the
 * kernel answers ENOSYS.
 */
#pragma once
#include "refused_call.h"

struct seccomp_notify {
	int      listener_fd; /* owned; -1: there is none, or the filter needs none */
	int      poll_fd;     /* listener_fd, to be polled for reading; -1 during a rest, in which no call is answered */
	bool     socket_was_allowed; /* a program was allowed a network socket */
	uint32_t answers;     /* since the last rest */
	uint32_t answered_programs; /* how many programs this process answers now; rests get as many times longer. 0: as 1 */
	double   answered;    /* when the last call was answered; CLOCK_MONOTONIC ms */
};
#define NOTICE_NONE ((struct seccomp_notify){ .listener_fd = -1, .poll_fd = -1 })

/* Call before each poll, with its timeout in ms: sets poll_fd and returns the timeout, shortened to the end of a rest. */
double seccomp_notify_update_pause(struct seccomp_notify *n, double wait);
/* Answers one waiting call, if there is one, as `filter` does. Closes the listener when no process is left under the filter. */
void   seccomp_notify_answer_pending(struct seccomp_notify *n, const struct sock_fprog *filter, struct refused_calls *refused);
void   seccomp_notify_close(struct seccomp_notify *n);
