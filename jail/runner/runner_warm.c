/* runner_warm.c - from a built cell to the end of its program: reports of PID 1 and the fork, requests for forks */
#define _GNU_SOURCE
#include "runner_parts.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "runner_send.h"

#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

/*
 * Ends a cell that is not to blame. Without a spec the monitor just builds another cell, and gets no reason. A client
 * whose spec is on its way gets it.
 */
static void end_cell_without_blame(struct runner *w, const struct err *why)
{
	bool is_unused = !runner_is_ending(w) && !w->spec_from && !runner_awaits_spec(w);

	runner_fail_run(w, EXIT_cancelled, why);
	if (is_unused)
		runner_enter_state(w, RUNNER_ENDS_UNUSED);
}

/* A session has no main.py: programs may make a file of that name. A launcher may not remove it: there the fork did. */
void runner_start_session(struct runner *w)
{
	int workspace = w->cell.warm.prepared[PREPARED_MOUNTS + CELL_MOUNTS - 1];

	(void)!unlinkat(workspace, "main.py", 0);
	runner_send_session_state(w);
}

/* Called twice for a cell that was built before there was a zygote: the second time it has a lease. */
static void report_cell_ready(struct runner *w)
{
	bool has_lease = w->lease < 0 && w->cell.warm.state != WARM_PREPARED;

	if (runner_is_ending(w))
		return;
	runner_enter_state(w, RUNNER_READY);
	if (w->control < 0)
		return;
	/* The peak of a cell for one run counts what was charged for its files, and its spec is on its way. */
	if (has_lease && !w->for_one_run && w->cell.group.files && !cg_reset_memory_peak(&w->cell.group))
		runner_end_run(w, EXIT_cancelled); /* these groups cannot be used again: the monitor makes others */
	else
		runner_send_cell_ready(w);
}

/* --- preparing --- */

/*
 * Asks a fork server for the program. Without an order only a zygote is asked: a cell without a zygote waits for an
 * order or for a zygote, whichever comes first. A fork ahead of the order is asked for only while there is no order.
 */
static void request_program_fork(struct runner *w)
{
	struct warm *warm        = &w->cell.warm;
	bool         is_possible = warm_is_zygote_ready(warm);
	struct err   e;

	if (warm->state != WARM_PREPARED || !warm->init_is_confined || runner_is_ending(w))
		return;
	if (!w->spec_from && !is_possible) {
		report_cell_ready(w);
		return;
	}
	w->is_warm_spec &= is_possible;
	if (warm->by_forker != (w->spec_from && !w->is_warm_spec))
		warm->asked_times = 0;
	warm->by_forker = w->spec_from && !w->is_warm_spec;
	warm->ahead    = warm->zygote.ahead && !w->spec_from;
	if (cell_request_fork(&w->cell, &w->spec, &e) < 0)
		runner_fail_run(w, EXIT_setup_failed, &e);
}

void runner_handle_zygote_up(struct runner *w)
{
	if (w->state == RUNNER_READY && !w->spec_from)
		request_program_fork(w);
}

/*
 * The fork has given up its rights and has the filter on. A fork that executes has succeeded when its report socket
 * closes: until then the exec can fail, and nothing has started.
 */
static bool has_program_started(const struct runner *w)
{
	return w->spec_from && w->cell.warm.fork_is_confined && (w->is_warm_spec || (w->execs && w->cell.warm.report_fd < 0));
}

static void hand_over_client_streams(struct runner *w)
{
	int       *client = w->cell.warm.prepared + PREPARED_CLIENT;
	struct err e;
	bool       is_here;

	/* Report a warm start immediately, even if the zygote has exited. */
	if (!w->spec_from || w->client_streams == STREAMS_GIVEN || runner_is_ending(w) || w->cell.warm.state < WARM_PREPARED)
		return;
	if (!w->is_warm_spec && !has_program_started(w))
		return;
	is_here           = w->client_streams == STREAMS_HERE;
	w->client_streams = STREAMS_GIVEN;
	if (is_here)
		pipes_take_client_ends(w->streams, client, w->head.stdin_pipe, w->head.result_pipe);
	for (size_t i = 0; i < PIPES_MAX; i++)
		fd_closep(&client[i]);
	/* The holder of a lease has its streams, and need not be woken for what it knows. */
	if (is_here && runner_send_program_started(w, &e) < 0)
		runner_fail_run(w, EXIT_cancelled, &e); /* its output would go nowhere */
}

static void adopt_prepared_cell(struct runner *w, const int *fds, size_t n)
{
	struct err e;

	if (warm_adopt_prepared_fds(&w->cell.warm, fds, n, &e) < 0) {
		while (n)
			close(fds[--n]);
		runner_fail_run(w, EXIT_setup_failed, &e);
		return;
	}
	files_send_workspace_fd(&w->files, w->cell.warm.prepared[PREPARED_MOUNTS + CELL_MOUNTS - 1]);
	hand_over_client_streams(w);
	request_program_fork(w);
}

/* --- the program begins --- */

/* Starts the clock, once the program runs. */
static void start_wall_clock(struct runner *w)
{
	if (!has_program_started(w) || w->clock.started || runner_is_ending(w))
		return;
	w->clock.started = clock_ms(CLOCK_MONOTONIC);
	w->started_at    = clock_ms(CLOCK_REALTIME) / 1000;
	w->end.figures.setup_ms  = w->clock.started - w->asked;
	if (w->session_ms)
		runner_start_session(w);
	fd_closep(&w->cell.warm.run_spec_file); /* the program has read it, and its memory is charged to no group */
}

static void start_run_if_program_started(struct runner *w)
{
	hand_over_client_streams(w);
	start_wall_clock(w);
}

/* An order, for a cell that is or will be prepared. */
void runner_handle_spec_taken(struct runner *w)
{
	if (w->cell.warm.state == WARM_WAITS)
		w->cell.warm.asked = clock_ms(CLOCK_MONOTONIC);
	hand_over_client_streams(w);
	request_program_fork(w);
	start_wall_clock(w);
}

/* --- what PID 1 and the fork report --- */

/* End of file: PID 1 has died; or a fork has executed its program, its last step: earlier ones report their failure. */
static void handle_report_socket_end(struct runner *w, int *fd)
{
	struct err e;

	fd_closep(fd);
	if (fd == &w->cell.report_fd && !w->cell.warm.init_is_confined) {
		err_set(&e, ERR_SETUP, "set-up step become-init: the cell died before brig-init was ready");
		runner_fail_run(w, EXIT_setup_failed, &e);
	}
	if (fd == &w->cell.warm.report_fd)
		start_run_if_program_started(w);
}

/*
 * Without a listener this process cannot know whether the network was used, so the network is not used again. The
 * same holds after a second fork, which has a filter of its own.
 */
static void adopt_seccomp_listener(struct runner *w, const int *fds, size_t n)
{
	if (w->cell.is_noticed || n != 1)
		w->cell.notice.socket_was_allowed = true;
	w->cell.is_noticed = true;
	seccomp_notify_close(&w->cell.notice);
	if (n)
		w->cell.notice.listener_fd = fds[--n];
	while (n)
		close(fds[--n]);
}

/* Takes what the fork offers, once the fork is known. A fork offers once; code of a program never has its socket. */
static void fetch_seccomp_listener(struct runner *w)
{
	struct warm *warm = &w->cell.warm;
	int          fd;
	char         is_taken;

	if (!warm->offered || warm->program_fd < 0)
		return;
	fd            = pidfd_getfd(warm->program_fd, warm->offered, 0);
	is_taken      = fd >= 0;
	warm->offered = 0;
	if (is_taken)
		adopt_seccomp_listener(w, &fd, 1);
	(void)!send(warm->report_fd, &is_taken, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void receive_child_report(struct runner *w, int *fd)
{
	enum { SETUP_NS_MAX = 1000000000 };
	struct child_report report;
	struct err          e;
	int                 fds[PREPARED_FDS];
	size_t              n;
	ssize_t             got     = packet_receive(*fd, &report, sizeof report, fds, ARRAY_LEN(fds), &n);
	bool                is_init = fd == &w->cell.report_fd;

	if (got == 1 && is_init) {
		packet_close_fds(fds, n);
		w->cell.warm.init_is_confined = true;
		request_program_fork(w);
		return;
	}
	if (got != sizeof report) {
		if (got < 0) { /* the program may have started, so this is no failure of the set-up */
			err_sys(&e, "the run cannot be watched: the cell's report");
			runner_fail_run(w, EXIT_cancelled, &e);
		}
		packet_close_fds(fds, n);
		handle_report_socket_end(w, fd);
		return;
	}
	/* PID 1 prepares the cell; only a fork confines itself. Each could be taken over, and send for the other. */
	if (report.message != CHILD_FAILED && (report.message == CHILD_PREPARED) != is_init) {
		packet_close_fds(fds, n);
		return;
	}
	if (report.message != CHILD_PREPARED && report.message != CHILD_LISTENER)
		packet_close_fds(fds, n);
	switch (report.message) {
	case CHILD_FAILED:
		child_report_to_err(&report, &w->cell.child, &e);
		if (child_exec_errno(&report))
			w->end.exec_errno = child_exec_errno(&report);
		runner_fail_run(w, EXIT_setup_failed, &e);
		return;
	case CHILD_PREPARED:
		w->cell.warm.cpu_before_ns = report.cpu_before_ns;
		adopt_prepared_cell(w, fds, n);
		return;
	case CHILD_LISTENER:
		if (n || report.detail <= 0 || w->cell.is_noticed) {
			adopt_seccomp_listener(w, fds, n);
			return;
		}
		w->cell.warm.offered = report.detail;
		fetch_seccomp_listener(w);
		return;
	case CHILD_EXECS:
		/*
		 * Taken off the program's CPU time. Read from the group now, it would include time of the program.
		 * Modules that a zygote has imported could report any number.
		 */
		w->setup_cpu_ns = report.cpu_ns < 0 ? 0 : report.cpu_ns < SETUP_NS_MAX ? report.cpu_ns : SETUP_NS_MAX;
		w->execs        = report.detail == CHILD_DETAIL_EXECS;
		if (w->cell.warm.fork_is_confined)
			return; /* the fork reports its CPU time once more */
		w->cell.warm.fork_is_confined = true;
		if (!w->spec_from)
			report_cell_ready(w);
		start_run_if_program_started(w);
		return;
	}
}

void runner_receive_init_report(struct runner *w)
{
	receive_child_report(w, &w->cell.report_fd);
}

void runner_receive_fork_report(struct runner *w)
{
	receive_child_report(w, &w->cell.warm.report_fd);
}

void runner_receive_all_fork_reports(struct runner *w)
{
	while (packet_is_readable(w->cell.warm.report_fd))
		runner_receive_fork_report(w);
}

/* --- what the fork server reports --- */

static void read_free_space_of_mounts(struct runner *w)
{
	struct program_end *r = &w->program;

	for (int i = 0; i < CELL_MOUNTS; i++) {
		struct statfs fs;

		if (fstatfs(w->cell.warm.prepared[PREPARED_MOUNTS + i], &fs) < 0)
			return;
		r->free_bytes[i]  = (uint64_t)fs.f_bfree * (uint64_t)fs.f_bsize;
		r->free_inodes[i] = (uint64_t)fs.f_ffree;
		r->mounts_read++;
	}
}

/* The program has ended. Processes that it has left die with PID 1. */
void runner_handle_program_end(struct runner *w)
{
	struct err e;
	int        status;

	if (warm_reap_program(&w->cell.warm, &status, &e) < 0) {
		runner_fail_run(w, EXIT_cancelled, &e);
		return;
	}
	runner_receive_all_fork_reports(w);
	fd_closep(&w->cell.warm.report_fd); /* end of file may come later, as the fork server has it open for a moment longer */
	start_run_if_program_started(w);
	if (w->spec_from ? !has_program_started(w) : !w->cell.warm.fork_is_confined) {
		err_set(&e, ERR_SETUP, "the program died while it was set up");
		runner_fail_run(w, EXIT_setup_failed, &e);
	}
	if (!w->spec_from) {
		err_set(&e, ERR_SETUP, "the fork of the zygote ended before it had an order");
		end_cell_without_blame(w, &e);
	}
	w->program.status = status;
	read_free_space_of_mounts(w);
	w->program_state = !runner_is_ending(w) && cg_read_pids_current(&w->cell.group) == 1 ? PROGRAM_LEFT_NONE : PROGRAM_ENDED;
	if (w->program_state == PROGRAM_ENDED)
		cell_kill(&w->cell);
}

/*
 * A fork closes its report socket when it has read what it is to run. The holder of a lease sends its order to the
 * supervisor first: without one there are no limits to hold the program to.
 */
void runner_handle_fork_gone(struct runner *w)
{
	struct err e;

	if (!w->spec_from && w->cell.warm.fork_is_confined) {
		err_set(&e, ERR_SETUP, "the fork of the zygote has read what its supervisor had no order for, or has ended");
		end_cell_without_blame(w, &e);
	}
}

static void fail_for_fork_server(struct runner *w, enum exit_reason reason, const struct err *e)
{
	if (w->spec_from || reason == EXIT_setup_failed)
		runner_fail_run(w, reason, e);
	else
		end_cell_without_blame(w, e);
}

void runner_receive_fork_server_answer(struct runner *w)
{
	struct err e;

	switch (warm_receive_answer(&w->cell.warm, &e)) {
	case WARM_GOES_ON:
		fetch_seccomp_listener(w);
		if (!w->spec_from && w->cell.warm.state == WARM_WAITS) {
			w->cell.warm.asked_times = 0; /* a zygote that waits for the spec has not died of the request */
			report_cell_ready(w);
		}
		return;
	case WARM_AGAIN:
		request_program_fork(w);
		return;
	case WARM_CANNOT:
		fail_for_fork_server(w, EXIT_setup_failed, &e);
		return;
	case WARM_IS_LOST:
		fail_for_fork_server(w, EXIT_cancelled, &e);
		return;
	}
}

static bool is_fork_server_answer_due(const struct runner *w)
{
	const struct warm *warm = &w->cell.warm;

	switch (warm->state) {
	case WARM_BUILDING:
	case WARM_PREPARED:
		return false;
	case WARM_ASKED:
		return true;
	case WARM_WAITS: /* the fork server has nothing to do until the spec can be read */
		return w->spec_from && packet_is_readable(warm->orders[1]);
	case WARM_FORKS:
		return warm->answer_fd >= 0;
	}
	return false;
}

/* Kills a fork server that has not answered in time, as it is stopped or overloaded: another one is started then. */
double runner_check_fork_server_timeout(struct runner *w, double now)
{
	double end         = w->cell.warm.asked + (w->cell.warm.server_was_importing ? WARM_START_MS_MAX : WARM_MS_MAX);
	bool   is_only_one = w->cell.warm.by_forker && w->cell.warm.forker->is_for_one; /* no other can be started */

	if (is_only_one || !is_fork_server_answer_due(w))
		return WARM_MS_MAX;
	if (now < end)
		return end - now;
	warm_kill_fork_server(&w->cell.warm);
	w->cell.warm.asked = now;
	return WARM_MS_MAX;
}
