#define _GNU_SOURCE
#include "run.h"

#include "fd.h"
#include "group.h"
#include "launcher.h"
#include "packet.h"
#include "slot.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int run_start(struct run *ret, const struct run_order *order, struct err *e)
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
		close(pair[0]);
		launcher_main(order, pair[1], &asked);
	}
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, "set-up step start-launcher: fork");
	}
	*ret = (struct run){ .sock = pair[0], .launcher = pid, .runtime_dir = order->runtime_dir };
	return 0;
}

/* Every child that is left, within 2 s: the launcher, and PID 1 of its cell that came to us. */
static void reap_children(struct run *run)
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

/* Not setup_failed: nobody knows whether the program had started. */
static void judge_silence(bool cut_off, struct run_end *end)
{
	*end        = RUN_END_NONE;
	end->reason = EXIT_cancelled;
	if (cut_off)
		err_sys(&end->why, "the launcher cannot be heard");
	else
		err_set(&end->why, ERR_SETUP, "the launcher was killed, or could not tell how the run ended");
}

/*
 * The launcher was killed: its PID 1 is dying with it. One that lives, and cannot be heard, ends its cell when the
 * client goes. What is left are the control groups.
 */
static void clean_after_launcher(struct run *run)
{
	struct slot slot;
	struct err  e;

	shutdown(run->sock, SHUT_RDWR);
	reap_children(run);
	if (run->has_slot && slot_take_number(run->runtime_dir, run->slot, &slot, &e) == 0) {
		group_clear(run->runtime_dir, run->slot);
		slot_done(&slot);
	}
}

enum run_event run_next(struct run *run, int streams[3], struct run_end *end)
{
	struct launch_word word;

	for (;;) {
		size_t  n;
		ssize_t got;

		streams[0] = streams[1] = streams[2] = -1;
		got                                  = packet_receive(run->sock, &word, sizeof word, streams, &n);
		if (got != sizeof word) {
			judge_silence(got < 0, end);
			clean_after_launcher(run);
			return RUN_ENDED;
		}
		switch (word.kind) {
		case LAUNCH_SLOT:
			run->slot     = word.number;
			run->has_slot = true;
			continue;
		case LAUNCH_STARTED:
			run->started = true;
			return RUN_STARTED;
		case LAUNCH_ENDED:
			*end = word.end;
			return RUN_ENDED;
		}
	}
}

void run_cancel(const struct run *run, enum exit_reason reason)
{
	struct launch_cancel cancel = { .reason = reason };

	(void)!send(run->sock, &cancel, sizeof cancel, MSG_NOSIGNAL);
}

void run_done(struct run *run)
{
	fd_closep(&run->sock);
	while (run->launcher > 0 && waitpid(run->launcher, NULL, 0) < 0 && errno == EINTR)
		;
	run->launcher = 0;
}
