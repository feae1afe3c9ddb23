#define _GNU_SOURCE
#include "run.h"

#include "child_wait.h"
#include "fd.h"
#include "cg.h"
#include "run_spec.h"
#include "launcher.h"
#include "packet.h"
#include "slot.h"
#include "text.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * Closes everything else that the caller has open: copies here would keep other
 * clients' connections alive, and other launchers would not see the caller's end.
 */
static void close_all_but_launcher_fds(const struct launch_args *args, int sock)
{
	int    keep[6 + MOUNT_SHOWN_MAX] = { sock,           args->exec_args->fd, args->code_fd,
					     args->files_fd, args->tools_fd,      args->trust_fd };
	size_t n                         = 6;

	for (size_t i = 0; i < args->shown_len && n < ARRAY_LEN(keep); i++)
		keep[n++] = args->shown_fd[i];
	(void)!fd_close_all_but(keep, n); /* the cell does it again, and fails if it cannot */
}

int run_start_launcher(struct run *ret, const struct launch_args *args, const struct brig_paths *paths, struct err *e)
{
	struct timespec asked;
	int             pair[2];
	pid_t           pid;

	clock_gettime(CLOCK_MONOTONIC, &asked);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_sys(e, "set-up step start-launcher: prctl");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "set-up step start-launcher: socketpair");
	pid = fork();
	if (pid == 0) {
		close_all_but_launcher_fds(args, pair[1]);
		launcher_main(args, paths, pair[1], &asked);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "set-up step start-launcher: fork");
	}
	*ret = (struct run){ .sock = pair[0], .launcher = pid, .runtime_dir = paths->runtime,
			     .pipes = pipes_count(args->stdin_pipe, args->result_pipe) };
	return 0;
}

/* Waits at most 2 s for all children: the launcher, and PID 1 of its cell, which this process inherits. */
static void reap_run_children(struct run *run)
{
	for (int ms = 0; ms < 2000; ms++) {
		pid_t pid;

		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			if (pid == run->launcher)
				run->launcher = 0;
		if (pid < 0)
			return;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

/* Neither NaN nor infinite: a figure that is added up would stay so for ever. */
static bool are_figures_finite(const struct run_result *end)
{
	const struct run_figures *f = &end->figures;

	return isfinite(f->wall_ms) && isfinite(f->cpu_ms) && isfinite(f->setup_ms) && fabs(end->started_at) < 1e12;
}

/*
 * A supervisor has no more rights on the host than its cells, so its messages are checked before they are used. warm
 * is an index of the server's figures.
 */
static bool is_run_result_valid(const struct run_result *end)
{
	if (end->warm > 1 || end->refused_known > 1 || !are_figures_finite(end))
		return false;
	for (unsigned i = 0; i < end->hits && i < ARRAY_LEN(end->hit); i++)
		if ((unsigned)end->hit[i].limit >= LIMIT_COUNT)
			return false;
	return (unsigned)end->reason < EXIT_REASONS && end->hits <= ARRAY_LEN(end->hit) && end->exec_errno >= 0 && refused_calls_is_sound(&end->refused) &&
	       text_has_terminator(end->missing_why[0], sizeof end->missing_why[0]) && text_has_terminator(end->missing_why[1], sizeof end->missing_why[1]) &&
	       text_has_terminator(end->rootfs_digest, sizeof end->rootfs_digest) && text_has_terminator(end->why.text, sizeof end->why.text) &&
	       text_has_terminator(end->left.text, sizeof end->left.text);
}

/* So that the texts can be written into JSON and to a terminal. */
static void sanitize_result_texts(struct run_result *end)
{
	text_make_plain(end->missing_why[0]);
	text_make_plain(end->missing_why[1]);
	text_make_plain(end->rootfs_digest);
	text_make_plain(end->why.text);
	text_make_plain(end->left.text);
}

/* Descriptors come with STARTED, once. Others would stay open in this process. */
static bool is_launch_message_expected(const struct run *run, const struct launch_message *message, size_t fds)
{
	if (message->kind == LAUNCH_STARTED)
		return !run->started && fds == run->pipes;
	return fds == 0 && ((message->kind != LAUNCH_ENDED && message->kind != LAUNCH_SESSION) || is_run_result_valid(&message->end));
}

/*
 * If the launcher was killed, PID 1 of its cell dies with it. If it lives and its messages cannot be received, it
 * ends its cell because the socket is shut down. The control groups are left to this process.
 */
static void clean_up_after_launcher(struct run *run)
{
	struct slot slot;
	struct err  e;

	shutdown(run->sock, SHUT_RDWR);
	if (run->launcher <= 0)
		return; /* of a service: the monitor cleans up */
	reap_run_children(run);
	if (run->has_slot && slot_wait_for_number(run->runtime_dir, run->slot, &slot, &e) == 0) {
		cg_clear_leftover_of_slot(run->runtime_dir, run->slot);
		slot_release(&slot);
	}
}

enum run_event run_receive_event(struct run *run, int streams[PIPES_MAX], struct run_result *end)
{
	struct launch_message message;
	size_t             n;
	ssize_t            got;

	for (size_t i = 0; i < PIPES_MAX; i++)
		streams[i] = -1;
	got = packet_receive(run->sock, &message, sizeof message, streams, PIPES_MAX, &n);
	if (got != sizeof message || !is_launch_message_expected(run, &message, n)) {
		packet_close_fds(streams, n);
		*end        = RUN_RESULT_NONE;
		end->reason = EXIT_cancelled; /* not setup_failed: whether the program had started is not known */
		if (got < 0)
			err_sys(&end->why, "no message of the launcher can be received");
		else
			err_set(&end->why, ERR_SETUP, "the launcher was killed, or could not report how the run ended");
		clean_up_after_launcher(run);
		return RUN_ENDED;
	}
	switch (message.kind) {
	case LAUNCH_SLOT:
		run->slot     = message.number;
		run->has_slot = true;
		return RUN_GOES_ON;
	case LAUNCH_STARTED:
		run->started = true;
		return RUN_STARTED;
	case LAUNCH_READY:
	case LAUNCH_TAKEN:
	case LAUNCH_RESTS:
		return RUN_GOES_ON;
	case LAUNCH_SESSION:
		run->victims   = message.number;
		run->is_frozen = message.value;
		*end         = message.end;
		sanitize_result_texts(end);
		return RUN_SESSION;
	case LAUNCH_LIMIT:
		end->hit[0] = (struct run_hit){ .limit = message.number % LIMIT_COUNT, .value = (int64_t)message.value };
		return RUN_LIMIT;
	case LAUNCH_ENDED:
		*end = message.end;
		sanitize_result_texts(end);
		return RUN_ENDED;
	}
	return RUN_GOES_ON;
}

/* Does not wait. False: a full socket has dropped the request. reason and ms: of the kinds that have them. sock: sent, or -1. */
static bool run_send_launch_request(const struct run *run, enum launch_request_kind kind, enum exit_reason reason, uint64_t ms, int sock)
{
	struct launch_request request;

	memset(&request, 0, sizeof request); /* padding too */
	request.kind   = kind;
	request.reason = reason;
	request.ms     = ms;
	return packet_send_nowait(run->sock, &request, sizeof request, &sock, sock >= 0) >= 0;
}

void run_request_cancel(const struct run *run, enum exit_reason reason)
{
	(void)run_send_launch_request(run, LAUNCH_CANCEL, reason, 0, -1);
}

void run_set_wall_clock_paused(const struct run *run, bool waits)
{
	(void)run_send_launch_request(run, waits ? LAUNCH_PAUSE_CLOCK : LAUNCH_RESUME_CLOCK, EXIT_cancelled, 0, -1);
}

bool run_set_session_lifetime(const struct run *run, uint64_t ms)
{
	return run_send_launch_request(run, LAUNCH_SESSION_LIFETIME, EXIT_cancelled, ms, -1);
}

void run_set_frozen(const struct run *run, bool is)
{
	(void)run_send_launch_request(run, is ? LAUNCH_FREEZE : LAUNCH_THAW, EXIT_cancelled, 0, -1);
}

void run_request_network_sockets(const struct run *run, int sock)
{
	(void)run_send_launch_request(run, LAUNCH_NETWORK, EXIT_cancelled, 0, sock);
}

void run_close(struct run *run)
{
	fd_closep(&run->sock);
	if (run->launcher > 0)
		(void)child_wait(run->launcher);
	run->launcher = 0;
}
