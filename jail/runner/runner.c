#define _GNU_SOURCE
#include "runner_parts.h"

#include "clock.h"
#include "fd.h"
#include "layer.h"
#include "packet.h"
#include "runner_send.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETUP_MS_MAX = 10000, KILL_MS_MAX = 1000, OOM_MS = 20, CPU_CHECK_MS_LEAST = 5, CPU_RETRY_MS = 100 };

/* --- from the running cell --- */

/* A frozen session can still be killed, and other processes keep its clocks. Only a message to it waits for the thaw. */
static void freeze(struct runner *w, bool is)
{
	if (w->is_frozen == is || !cg_freeze(&w->cell.group, is))
		return;
	w->is_frozen = is;
	runner_send_session(w);
}

/* False: the message is invalid. fd: the descriptor that came with it, or -1; taken where it is used. */
static bool handle_request(struct runner *w, const struct launch_request *ask, int *fd)
{
	if ((ask->kind == LAUNCH_NETWORK) != (*fd >= 0))
		return false;
	switch (ask->kind) {
	case LAUNCH_CANCEL:
		if (ask->reason != EXIT_cancelled && ask->reason != EXIT_output_limit && ask->reason != EXIT_client_gone)
			return false;
		runner_decide(w, ask->reason);
		return true;
	case LAUNCH_PAUSE_CLOCK:
	case LAUNCH_RESUME_CLOCK:
		wall_clock_wait(&w->clock, ask->kind == LAUNCH_PAUSE_CLOCK, clock_ms(CLOCK_MONOTONIC));
		return true;
	case LAUNCH_FREEZE:
	case LAUNCH_THAW:
		if (!w->session_ms)
			return false;
		freeze(w, ask->kind == LAUNCH_FREEZE);
		return true;
	case LAUNCH_MAKE_SESSION:
		if (ask->ms == 0 || ask->ms > w->lifetime_ms_max || w->session_ms)
			return false;
		w->session_ms = ask->ms;
		if (w->clock.started)
			runner_begin_session(w);
		return true;
	case LAUNCH_NETWORK:
		net_sockets_ask(&w->cell.sockets, fd_take(fd));
		return true;
	}
	return false;
}

static ssize_t receive_request(struct runner *w, struct launch_request *ask, int *fd)
{
	size_t n;

	if (!packet_is_there(w->client)) {
		errno = EAGAIN;
		return -1;
	}
	return packet_receive(w->client, ask, sizeof *ask, fd, 1, &n);
}

static void on_client(struct runner *w)
{
	struct launch_request ask;
	scoped_fd         fd = -1;
	ssize_t           n  = receive_request(w, &ask, &fd);

	if (n == sizeof ask && handle_request(w, &ask, &fd))
		return;
	if (n < 0 && errno == EAGAIN)
		return;
	runner_decide(w, EXIT_client_gone);
	fd_closep(&w->client);
}

/* The event comes as well when a group above the cell's has no memory left. The kernel then chooses what to kill, in the cell or elsewhere. */
static void end_for_memory(struct runner *w)
{
	if (w->session_ms && runner_kill_oom_target(w)) {
		runner_send_session(w);
		w->next_oom = clock_ms(CLOCK_MONOTONIC) + OOM_MS; /* the oom_target takes a moment to end; others that wait cause events of their own */
		cg_rearm_oom(&w->cell.oom);
		return;
	}
	w->oom = true;
	runner_decide(w, EXIT_oom); /* half a process tree is worse than none */
}

static void on_oom(struct runner *w)
{
	if (cg_take_oom_event(&w->cell.group, &w->cell.oom))
		end_for_memory(w);
}

static void on_oom_helper(struct runner *w)
{
	if (cg_reap_oom_helper(&w->cell.oom))
		end_for_memory(w);
	w->next_oom = clock_ms(CLOCK_MONOTONIC) + OOM_MS;
}

static void on_notice(struct runner *w)
{
	seccomp_notify_answer(&w->cell.notice, w->order.filter, &w->end.refused);
}

/* The program has begun to use its network. */
static void on_network(struct runner *w)
{
	net_sockets_give(&w->cell.sockets);
}

/* --- orders --- */

/* A lease that was closed unused is returned: the monitor may use the cell for another run. */
static void on_lease(struct runner *w)
{
	if (!runner_take_lease(w) && !w->ordered && !w->decided)
		runner_send_returned(w);
}

static void on_control_end(struct runner *w)
{
	struct err e;

	fd_closep(&w->control);
	err_set(&e, ERR_SETUP, "the monitor is gone");
	runner_fail(w, EXIT_cancelled, &e);
}

static void on_control(struct runner *w)
{
	if (!runner_take_spec(w))
		on_control_end(w);
}

/* The program may have read its order, or have ended, before the supervisor has looked at the lease. */
static void take_lease_first(struct runner *w)
{
	if (packet_is_there(w->lease))
		(void)runner_take_lease(w);
}

static void on_program(struct runner *w)
{
	take_lease_first(w);
	runner_program_ended(w);
}

/* Its end before an order: the fork has read one that only the lease brings here, or has died. */
static void on_fork_report(struct runner *w)
{
	runner_receive_fork(w);
	if (w->cell.warm.report_fd >= 0 || w->ordered)
		return;
	take_lease_first(w);
	runner_fork_is_gone(w);
}

/* --- the files --- */

static void on_files(struct runner *w)
{
	struct err e;

	switch (files_receive(&w->files, &e)) {
	case FILES_GO_ON:
	case FILES_FILLED: /* the order is read now */
	case FILES_DONE:
		return;
	case FILES_FAILED:
		if (!w->clock.started) /* later, the failure is told when the files are due */
			runner_fail(w, EXIT_setup_failed, &e);
		return;
	}
}

/* --- the clocks --- */

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* When to read the counter again: the limit is reached soonest if the program uses all of its CPUs. */
static double next_cpu_check(const struct runner *w, double used_ms)
{
	double left = (double)w->order.limits->cpu_ms - used_ms;
	double cpus = (double)w->order.limits->cpus / 1000;
	double wait = left / (cpus < 1 ? 1 : cpus);

	return wait < CPU_CHECK_MS_LEAST ? CPU_CHECK_MS_LEAST : wait;
}

double runner_cpu_ms(const struct runner *w, int64_t cg_ns)
{
	return cg_ns < 0 ? RECORD_NONE : (double)(cg_ns - w->setup_cpu_ns) / 1e6;
}

static double check_cpu(struct runner *w)
{
	double used;

	if (w->session_ms) /* the limit is that of each call */
		return SETUP_MS_MAX;
	used = runner_cpu_ms(w, cg_cpu_ns(&w->cell.group));
	if (used >= (double)w->order.limits->cpu_ms) {
		runner_receive_all_of_fork(w); /* what a rehearsal took is not the program's */
		used = runner_cpu_ms(w, cg_cpu_ns(&w->cell.group));
	}
	if (used < 0) /* the counter could not be read: try again */
		return cg_leaf_with(&w->cell.group, CG_CPUACCT) ? CPU_RETRY_MS : SETUP_MS_MAX;
	if (used >= (double)w->order.limits->cpu_ms) {
		runner_decide(w, EXIT_timeout_cpu);
		return SETUP_MS_MAX;
	}
	return next_cpu_check(w, used);
}

static const char *what_is_late(const struct warm *warm)
{
	if (warm->by_forker || warm->state == WARM_FORKS)
		return "the program was not started";
	return warm->state == WARM_ASKED ? "no zygote answered" : "the cell was not built";
}

static double wall_end(const struct runner *w, double now)
{
	return w->session_ms ? w->clock.started + (double)w->session_ms : wall_clock_end(&w->clock, w->order.limits, now);
}

static double check_clocks(struct runner *w)
{
	double     now = clock_ms(CLOCK_MONOTONIC), deadline, patience;
	struct err e;

	if (w->files.state == FILES_FILLS && now >= w->asked + SETUP_MS_MAX && !w->decided) {
		err_set(&e, ERR_SETUP, "files: they did not come within %d s", SETUP_MS_MAX / 1000);
		runner_fail(w, EXIT_setup_failed, &e);
	}
	if (!w->ordered && w->ready)
		return SETUP_MS_MAX; /* a cell may wait as long as it likes */
	if (!w->clock.started) {
		patience = runner_fork_server_timeout(w, now);
		if (!w->ordered && w->cell.warm.state == WARM_ASKED)
			return patience; /* the zygote may have much to import */
		deadline = w->asked + SETUP_MS_MAX;
		if (now >= deadline && !w->decided) {
			err_set(&e, ERR_SETUP, "%s within %d s", what_is_late(&w->cell.warm),
				SETUP_MS_MAX / 1000);
			runner_fail(w, EXIT_setup_failed, &e);
		}
		return least(deadline - now, patience);
	}
	deadline = wall_end(w, now);
	if (now >= deadline)
		runner_decide(w, EXIT_timeout_wall);
	if (now >= w->next_cpu)
		w->next_cpu = now + check_cpu(w);
	return least(deadline, w->next_cpu) - now;
}

static double check_taken(struct runner *w, double left)
{
	double now = w->taken_due_ms > 0 ? clock_ms(CLOCK_MONOTONIC) : 0;

	if (w->taken_due_ms <= 0)
		return left;
	if (now < w->taken_due_ms)
		return least(left, w->taken_due_ms - now);
	runner_send_taken(w);
	return left;
}

/* Handled in this order: an order before its effects, and what a process reports before its end. */
static const struct source {
	size_t fd; /* in struct runner */
	void (*handle)(struct runner *);
} sources[] = {
#define AT(member) offsetof(struct runner, member)
	{ AT(lease), on_lease },
	{ AT(cell.report_fd), runner_receive_init },
	{ AT(cell.warm.report_fd), on_fork_report },
	{ AT(cell.notice.poll_fd), on_notice },
	{ AT(cell.sockets.used_fd), on_network },
	{ AT(cell.oom.fd), on_oom },
	{ AT(cell.oom.helper_fd), on_oom_helper },
	{ AT(files.sock), on_files },
	{ AT(control), on_control }, /* before the client: the end of the monitor is the reason, a cancel of the server a consequence */
	{ AT(client), on_client },
	{ AT(cell.warm.answer_fd), runner_receive_fork_server },
	{ AT(cell.warm.program_fd), on_program },
#undef AT
};

/* After the decision no order and no message of the client is read: runner_take_late_spec() reads the order that is there. */
static bool is_polled(const struct runner *w, const struct source *s)
{
	if (s->handle == on_control && w->files.state == FILES_FILLS) /* the order waits until the program's files are there */
		return false;
	return !w->decided || (s->handle != on_control && s->handle != on_client);
}

/* What the fork reports from now on, its failure or more of its CPU time, is read when it has ended or seems to be out of CPU time. */
static bool has_begun(const struct runner *w)
{
	return w->ordered && w->is_warm_spec && w->cell.warm.fork_is_confined;
}

static int fd_of(const struct runner *w, const struct source *s)
{
	if (s->handle == on_oom && (w->cell.oom.helper_fd >= 0 || w->next_oom > 0))
		return -1;
	if (s->handle == on_network && w->cell.sockets.to < 0) /* the server has not asked for the sockets yet */
		return -1;
	if (s->handle == runner_receive_init && w->cell.warm.init_is_confined) /* the program could have taken over PID 1: its messages are not read any more */
		return -1;
	if (s->handle == on_fork_report && w->cell.warm.report_fd >= 0 && has_begun(w))
		return ~w->cell.warm.report_fd;
	return is_polled(w, s) ? *(const int *)((const char *)w + s->fd) : -1;
}

/* A source that an earlier one has closed or replaced is handled at the next turn. */
static void handle(struct runner *w, const struct pollfd *fds)
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (fds[i].revents && fd_of(w, &sources[i]) == fds[i].fd)
			sources[i].handle(w);
}

_Static_assert(RUNNER_FDS == ARRAY_LEN(sources) + 1, "the last one is PID 1");

static double check_oom(struct runner *w, double left)
{
	double rest = w->next_oom > 0 ? w->next_oom - clock_ms(CLOCK_MONOTONIC) : 0;

	if (rest <= 0)
		w->next_oom = 0;
	return rest > 0 ? least(left, rest) : left;
}

double runner_left(struct runner *w)
{
	double left = w->decided ? KILL_MS_MAX : check_clocks(w);

	if (w->decided || w->clock.started) /* a cell does not end before its fork server has answered, or has died */
		left = least(left, runner_fork_server_timeout(w, clock_ms(CLOCK_MONOTONIC)));
	left = check_oom(w, left);
	return check_taken(w, seccomp_notify_turn(&w->cell.notice, left));
}

void runner_fds(const struct runner *w, struct pollfd fds[RUNNER_FDS])
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		fds[i] = (struct pollfd){ .fd = fd_of(w, &sources[i]), .events = sources[i].handle == on_oom ? w->cell.oom.events : POLLIN };
	fds[ARRAY_LEN(sources)] = (struct pollfd){ .fd = w->cell.pidfd, .events = POLLIN };
}

bool runner_handle_events(struct runner *w, const struct pollfd fds[RUNNER_FDS])
{
	handle(w, fds);
	return !w->only_init_is_left && !(fds[ARRAY_LEN(sources)].revents && (w->cell.warm.init_is_confined || w->cell.report_fd < 0));
}
