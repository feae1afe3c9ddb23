#define _GNU_SOURCE
#include "seccomp_notify.h"

#include "clock.h"
#include "fd.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/*
 * Program and supervisor (or launcher) wake each other with every answer, and neither runs for a whole time slice: seen
 * on Linux 6.18, two such pairs kept every other process of a host with two CPUs waiting for seconds. So both rest
 * after some answers. The answers are counted, whatever time they take: a limit on answers per millisecond has no
 * effect where creating a socket takes longer than that.
 */
enum { ANSWERS_MAX = 16, REST_MS = 2 };

/* Fits a struct seccomp_notif of a newer kernel, which may be larger. Asking for its size would cost a system call. */
enum { NOTIF_BYTES = 1024 };

static double notify_rest_ms(const struct seccomp_notify *n)
{
	return REST_MS * (n->answered_programs ? n->answered_programs : 1);
}

double seccomp_notify_update_pause(struct seccomp_notify *n, double wait)
{
	double rest;

	n->poll_fd = n->listener_fd;
	if (n->answers < ANSWERS_MAX)
		return wait;
	rest = n->answered + notify_rest_ms(n) - clock_ms(CLOCK_MONOTONIC);
	if (rest <= 0) {
		n->answers = 0;
		return wait;
	}
	n->poll_fd = -1;
	return rest < wait ? rest : wait;
}

/*
 * The filter's own answer. It was computed outside of the kernel from a copy, so only calls that create a socket may
 * continue: they are the only ones that the filter stops and would have allowed (filter_notice.h).
 */
static struct seccomp_notif_resp make_notify_response(uint32_t answer_of_filter, const struct seccomp_data *data)
{
	uint32_t action = answer_of_filter & SECCOMP_RET_ACTION_FULL;

	if ((action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG) && (data->nr == SYS_socket || data->nr == SYS_socketpair))
		return (struct seccomp_notif_resp){ .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	return (struct seccomp_notif_resp){ .error = action == SECCOMP_RET_ERRNO ? -(int)(answer_of_filter & SECCOMP_RET_DATA) : -EPERM };
}

static void answer_one_notice(struct seccomp_notify *n, const struct sock_fprog *filter, struct refused_calls *refused)
{
	union {
		struct seccomp_notif asked;
		char                 bytes[NOTIF_BYTES];
	} in;
	struct seccomp_notif_resp out;
	double                    now = clock_ms(CLOCK_MONOTONIC);

	n->answers   = now - n->answered < notify_rest_ms(n) ? n->answers + 1 : 1; /* a pause that is as long as a rest counts as a rest */
	n->answered  = now;
	memset(&in, 0, sizeof in); /* the kernel answers EINVAL otherwise */
	if (ioctl(n->listener_fd, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
		return; /* the process that asked is dead */
	out    = make_notify_response(refused_calls_run_filter(refused, filter, &in.asked.data), &in.asked.data);
	out.id = in.asked.id;
	n->socket_was_allowed |= out.flags != 0;
	while (ioctl(n->listener_fd, SECCOMP_IOCTL_NOTIF_SEND, &out) < 0 && errno == EINTR)
		; /* the kernel notifies once per call: without an answer the call would wait for ever */
}

/* Polls first: receiving blocks when no call waits. */
void seccomp_notify_answer_pending(struct seccomp_notify *n, const struct sock_fprog *filter, struct refused_calls *refused)
{
	struct pollfd p = { .fd = n->listener_fd, .events = POLLIN };

	if (poll(&p, 1, 0) != 1)
		return;
	if (p.revents & POLLIN)
		answer_one_notice(n, filter, refused);
	else if (p.revents & (POLLHUP | POLLNVAL)) /* POLLERR: a signal interrupted the poll */
		seccomp_notify_close(n);
}

void seccomp_notify_close(struct seccomp_notify *n)
{
	fd_closep(&n->listener_fd);
	n->poll_fd = -1;
}
