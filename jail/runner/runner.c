#define _GNU_SOURCE
#include "runner_parts.h"

#include "clock.h"
#include "fd.h"
#include "layer.h"
#include "packet.h"
#include "runner_send.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETUP_MS_MAX = 10000, KILL_MS_MAX = 1000, OOM_MS = 20, CPU_CHECK_MS_LEAST = 5, CPU_RETRY_MS = 100 };

/* --- from the running cell --- */

/* False: the message is invalid. fd: the descriptor that came with it, or -1; taken where it is used. */
static bool handle_client_request(struct runner *w, const struct launch_request *request, int *fd)
{
	bool is_first;

	if ((request->kind == LAUNCH_NETWORK) != (*fd >= 0))
		return false;
	switch (request->kind) {
	case LAUNCH_CANCEL:
		if (request->reason != EXIT_cancelled && request->reason != EXIT_output_limit && request->reason != EXIT_client_gone)
			return false;
		runner_end_run(w, request->reason);
		return true;
	case LAUNCH_PAUSE_CLOCK:
	case LAUNCH_RESUME_CLOCK:
		wall_clock_set_waiting(&w->clock, request->kind == LAUNCH_PAUSE_CLOCK, clock_ms(CLOCK_MONOTONIC));
		return true;
	case LAUNCH_FREEZE:
	case LAUNCH_THAW:
		if (!w->session_ms)
			return false;
		/* A frozen session can be killed, and its clocks run outside. Only a message to it waits for the thaw. */
		if (w->is_frozen != (request->kind == LAUNCH_FREEZE) && cg_set_frozen(&w->cell.group, !w->is_frozen)) {
			w->is_frozen = !w->is_frozen;
			runner_send_session_state(w);
		}
		return true;
	case LAUNCH_SESSION_LIFETIME:
		if (request->ms == 0 || request->ms > w->lifetime_ms_max)
			return false;
		is_first      = w->session_ms == 0;
		w->session_ms = request->ms;
		if (is_first && w->clock.started)
			runner_start_session(w);
		return true;
	case LAUNCH_NETWORK:
		net_sockets_set_receiver(&w->cell.sockets, fd_take(fd));
		return true;
	}
	return false;
}

static void receive_client_request(struct runner *w)
{
	struct launch_request request;
	scoped_fd             fd = -1;
	size_t                n;
	ssize_t               got;

	if (!packet_is_readable(w->client))
		return;
	got = packet_receive(w->client, &request, sizeof request, &fd, 1, &n);
	if ((got == sizeof request && handle_client_request(w, &request, &fd)) || (got < 0 && errno == EAGAIN))
		return;
	runner_end_run(w, EXIT_client_gone);
	fd_closep(&w->client);
}

/*
 * The event comes as well when a group above the cell's has no memory left. The kernel then chooses what to kill, in
 * the cell or elsewhere.
 */
static void handle_out_of_memory(struct runner *w)
{
	if (w->session_ms && runner_kill_oom_target(w)) {
		runner_send_session_state(w);
		/* The killed process takes a moment to end; others that wait cause events of their own. */
		w->next_oom = clock_ms(CLOCK_MONOTONIC) + OOM_MS;
		cg_rearm_oom_watch(&w->cell.oom);
		return;
	}
	w->oom = true;
	runner_end_run(w, EXIT_oom); /* half a process tree is worse than none */
}

static void handle_oom_event(struct runner *w)
{
	if (cg_take_oom_event(&w->cell.group, &w->cell.oom))
		handle_out_of_memory(w);
}

static void handle_oom_helper_exit(struct runner *w)
{
	if (cg_reap_oom_helper(&w->cell.oom))
		handle_out_of_memory(w);
	w->next_oom = clock_ms(CLOCK_MONOTONIC) + OOM_MS;
}

static void answer_seccomp_notice(struct runner *w)
{
	seccomp_notify_answer_pending(&w->cell.notice, w->spec.filter, &w->end.refused);
}

/* The program has begun to use its network. */
static void handle_first_network_use(struct runner *w)
{
	net_sockets_send(&w->cell.sockets);
}

/* --- what to run --- */

/* A lease that was closed unused is returned: the monitor may use the cell for another run. */
static void receive_lease_message(struct runner *w)
{
	if (!runner_receive_lease_spec(w) && !w->spec_from && !runner_is_ending(w))
		runner_send_lease_returned(w);
}

static void receive_control_message(struct runner *w)
{
	struct err e;

	if (runner_receive_control_spec(w))
		return;
	fd_closep(&w->control);
	err_set(&e, ERR_SETUP, "the monitor is gone");
	runner_fail_run(w, EXIT_cancelled, &e);
}

/* The program may have read its spec, or have ended, before the supervisor has looked at the lease. */
static void take_pending_lease_spec(struct runner *w)
{
	if (packet_is_readable(w->lease))
		(void)runner_receive_lease_spec(w);
}

static void handle_program_exit(struct runner *w)
{
	take_pending_lease_spec(w);
	runner_handle_program_end(w);
}

/* Its end before a spec: the fork has read one that only the lease brings here, or has died. */
static void receive_fork_report(struct runner *w)
{
	runner_receive_fork_report(w);
	if (w->cell.warm.report_fd >= 0 || w->spec_from)
		return;
	take_pending_lease_spec(w);
	runner_handle_fork_gone(w);
}

/* --- the files --- */

static void handle_files_answer(struct runner *w)
{
	struct err e;

	switch (files_receive_answer(&w->files, &e)) {
	case FILES_GO_ON:
	case FILES_FILLED: /* the spec is read now */
	case FILES_DONE:
		return;
	case FILES_FAILED:
		if (!w->clock.started) /* later, the failure is reported when the files are due */
			runner_fail_run(w, EXIT_setup_failed, &e);
		return;
	}
}

/* --- the clocks --- */

static double smaller_ms(double a, double b)
{
	return a < b ? a : b;
}

double runner_program_cpu_ms(const struct runner *w, int64_t cg_ns)
{
	return cg_ns < 0 ? RECORD_NONE : (double)(cg_ns - w->setup_cpu_ns) / 1e6;
}

/* Returns in how many ms to read it again: the limit is reached soonest if the program uses all of its CPUs. */
static double check_cpu_limit(struct runner *w)
{
	double used, cpus = (double)w->spec.limits->cpus / 1000, wait;

	if (w->session_ms) /* the limit is that of each call */
		return SETUP_MS_MAX;
	used = runner_program_cpu_ms(w, cg_read_cpu_ns(&w->cell.group));
	if (used >= (double)w->spec.limits->cpu_ms) {
		runner_receive_all_fork_reports(w); /* what a rehearsal took is not the program's */
		used = runner_program_cpu_ms(w, cg_read_cpu_ns(&w->cell.group));
	}
	if (used < 0) /* the counter could not be read: try again */
		return cg_leaf_with_controller(&w->cell.group, CG_CPUACCT) ? CPU_RETRY_MS : SETUP_MS_MAX;
	if (used >= (double)w->spec.limits->cpu_ms) {
		runner_end_run(w, EXIT_timeout_cpu);
		return SETUP_MS_MAX;
	}
	wait = ((double)w->spec.limits->cpu_ms - used) / (cpus < 1 ? 1 : cpus);
	return wait < CPU_CHECK_MS_LEAST ? CPU_CHECK_MS_LEAST : wait;
}

static const char *late_step_text(const struct warm *warm)
{
	if (warm->by_forker || warm->state == WARM_FORKS)
		return "the program was not started";
	return warm->state == WARM_ASKED ? "no zygote answered" : "the cell was not built";
}

static double check_time_limits(struct runner *w)
{
	double     now = clock_ms(CLOCK_MONOTONIC), deadline, server_left;
	struct err e;

	if (w->files.state == FILES_FILLS && now >= w->asked + SETUP_MS_MAX && !runner_is_ending(w)) {
		err_set(&e, ERR_SETUP, "files: they did not come within %d s", SETUP_MS_MAX / 1000);
		runner_fail_run(w, EXIT_setup_failed, &e);
	}
	if (!w->spec_from && w->state == RUNNER_READY)
		return SETUP_MS_MAX; /* a cell may wait as long as it likes */
	if (!w->clock.started) {
		server_left = runner_check_fork_server_timeout(w, now);
		if (!w->spec_from && w->cell.warm.state == WARM_ASKED)
			return server_left; /* the zygote may have much to import */
		deadline = w->asked + SETUP_MS_MAX;
		if (now >= deadline && !runner_is_ending(w)) {
			err_set(&e, ERR_SETUP, "%s within %d s", late_step_text(&w->cell.warm), SETUP_MS_MAX / 1000);
			runner_fail_run(w, EXIT_setup_failed, &e);
		}
		return smaller_ms(deadline - now, server_left);
	}
	deadline = w->session_ms ? w->clock.started + (double)w->session_ms : wall_clock_end(&w->clock, w->spec.limits, now);
	if (now >= deadline)
		runner_end_run(w, EXIT_timeout_wall);
	if (now >= w->next_cpu)
		w->next_cpu = now + check_cpu_limit(w);
	return smaller_ms(deadline, w->next_cpu) - now;
}

/* Handled in this order: a spec before its effects, and what a process reports before its end. */
static const struct source {
	size_t fd; /* in struct runner */
	void (*handle)(struct runner *);
} sources[] = {
#define AT(member) offsetof(struct runner, member)
	{ AT(lease), receive_lease_message },
	{ AT(cell.report_fd), runner_receive_init_report },
	{ AT(cell.warm.report_fd), receive_fork_report },
	{ AT(cell.notice.poll_fd), answer_seccomp_notice },
	{ AT(cell.sockets.used_fd), handle_first_network_use },
	{ AT(cell.oom.fd), handle_oom_event },
	{ AT(cell.oom.helper_fd), handle_oom_helper_exit },
	{ AT(files.sock), handle_files_answer },
	{ AT(control), receive_control_message }, /* before the client, whose cancel is a consequence of the monitor's end */
	{ AT(client), receive_client_request },
	{ AT(cell.warm.answer_fd), runner_receive_fork_server_answer },
	{ AT(cell.warm.program_fd), handle_program_exit },
#undef AT
};

static int poll_fd_of_source(const struct runner *w, const struct source *s)
{
	bool has_begun = w->spec_from && w->is_warm_spec && w->cell.warm.fork_is_confined;

	if (s->handle == handle_oom_event && (w->cell.oom.helper_fd >= 0 || w->next_oom > 0))
		return -1;
	if (s->handle == handle_first_network_use && w->cell.sockets.to < 0) /* the server has not asked for the sockets yet */
		return -1;
	/* The program could have taken over PID 1: its messages are not read any more. */
	if (s->handle == runner_receive_init_report && w->cell.warm.init_is_confined)
		return -1;
	/* Its failure, or more of its CPU time, is read when it has ended or seems to be out of CPU time. */
	if (s->handle == receive_fork_report && w->cell.warm.report_fd >= 0 && has_begun)
		return ~w->cell.warm.report_fd;
	if (s->handle == receive_control_message && w->files.state == FILES_FILLS) /* the spec waits until the program's files are there */
		return -1;
	/* After the decision runner_receive_late_spec() reads the spec that is there. */
	if (runner_is_ending(w) && (s->handle == receive_control_message || s->handle == receive_client_request))
		return -1;
	return *(const int *)((const char *)w + s->fd);
}

_Static_assert(RUNNER_FDS == ARRAY_LEN(sources) + 1, "the last one is PID 1");

double runner_ms_until_wakeup(struct runner *w)
{
	double left = runner_is_ending(w) ? KILL_MS_MAX : check_time_limits(w), now = clock_ms(CLOCK_MONOTONIC);

	if (runner_is_ending(w) || w->clock.started) /* a cell does not end before its fork server has answered, or has died */
		left = smaller_ms(left, runner_check_fork_server_timeout(w, now));
	if (w->next_oom <= now)
		w->next_oom = 0;
	else
		left = smaller_ms(left, w->next_oom - now);
	left = seccomp_notify_update_pause(&w->cell.notice, left);
	if (w->taken_due_ms <= now)
		runner_send_lease_taken(w);
	else
		left = smaller_ms(left, w->taken_due_ms - now);
	return left;
}

void runner_fill_pollfds(const struct runner *w, struct pollfd fds[RUNNER_FDS])
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		fds[i] = (struct pollfd){ .fd     = poll_fd_of_source(w, &sources[i]),
					  .events = sources[i].handle == handle_oom_event ? w->cell.oom.events : POLLIN };
	fds[ARRAY_LEN(sources)] = (struct pollfd){ .fd = w->cell.pidfd, .events = POLLIN };
}

bool runner_handle_events(struct runner *w, const struct pollfd fds[RUNNER_FDS])
{
	bool init_has_ended = fds[ARRAY_LEN(sources)].revents;

	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (fds[i].revents && poll_fd_of_source(w, &sources[i]) == fds[i].fd) /* an earlier one may have closed it */
			sources[i].handle(w);
	if (w->program_state == PROGRAM_LEFT_NONE)
		return false;
	return !init_has_ended || !(w->cell.warm.init_is_confined || w->cell.report_fd < 0);
}
