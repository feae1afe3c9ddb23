#define _GNU_SOURCE
#include "launcher.h"

#include "fd.h"
#include "group_sweep.h"
#include "packet.h"
#include "privilege.h"
#include "verdict.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* A client that is gone is noticed by poll. */
static int say(int sock, const struct launch_word *word, const int *fds, size_t n, struct err *e)
{
	int r = packet_send(sock, word, sizeof *word, fds, n);

	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return 0;
	errno = -r;
	return err_sys(e, "the client cannot be told");
}

/* Without it nobody could clean up after a launcher that was killed. */
static int say_slot(const struct watch *w, struct err *e)
{
	struct launch_word word = { .kind = LAUNCH_SLOT, .number = w->cell.slot.number };

	return say(w->client, &word, NULL, 0, e) < 0 ? err_wrap(e, "set-up step take-slot") : 0;
}

void launcher_say_started(struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_STARTED };
	struct err         e;

	if (say(w->client, &word, w->streams, w->order->stdin_pipe ? 3 : 2, &e) < 0)
		watch_fail(w, EXIT_cancelled, &e); /* its output would go nowhere */
	for (size_t i = 0; i < ARRAY_LEN(w->streams); i++)
		fd_closep(&w->streams[i]);
}

static void say_ended(const struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_ENDED, .end = w->end };
	struct err         ignored; /* the client then hears nothing, and says so */

	(void)!say(w->client, &word, NULL, 0, &ignored);
}

static void finish(struct watch *w)
{
	verdict_fill(w);
	memcpy(w->end.rootfs_digest, w->cell.rootfs.digest, sizeof w->end.rootfs_digest);
	(void)!cell_close(&w->cell, &w->end.left);
	say_ended(w);
}

/* Terminal keys go to the client; an end asked of us by signal is a cancel. What else the caller left does not matter. */
static int take_signals(void)
{
	sigset_t set;

	setsid();
	umask(022); /* the cell inherits it: under 077 the program could not read main.py, under 0777 we could not remove what we made */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a caller's file size limit is an error to report, not a death */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_SETMASK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int take_place(struct watch *w, struct err *e)
{
	if (cell_enter_outer(&w->cell, w->order, e) < 0)
		return -1;
	for (uint32_t first = 0;; first = w->cell.slot.number + 1) {
		if (cell_take_slot(&w->cell, w->order, first, e) < 0 || say_slot(w, e) < 0)
			return -1;
		switch (cell_make_groups(&w->cell, w->order, e)) {
		case GROUP_MADE:
			group_sweep(&w->cell.group, &w->cell.slot, w->order->runtime_dir);
			return 0;
		case GROUP_TAKEN:
			continue;
		case GROUP_FAILED:
			return -1;
		}
	}
}

static void build_and_watch(struct watch *w)
{
	struct err e;

	if ((w->signals < 0 && err_sys(&e, "set-up step watch-signals") < 0) || take_place(w, &e) < 0 || cell_open(&w->cell, w->order, &e) < 0 ||
	    privilege_drop(&e) < 0 || cell_let_go(&w->cell, &e) < 0) {
		watch_fail(w, EXIT_setup_failed, &e);
		return;
	}
	watch_cell(w);
}

_Noreturn void launcher_main(const struct run_order *order, int sock, const struct timespec *asked)
{
	struct watch w = {
		.order   = order,
		.client  = sock,
		.streams = { -1, -1, -1 },
		.asked   = (double)asked->tv_sec * 1e3 + (double)asked->tv_nsec / 1e6,
		.end     = RUN_END_NONE,
	};

	prctl(PR_SET_NAME, "brig-launcher");
	cell_init(&w.cell);
	w.signals = take_signals();
	build_and_watch(&w);
	finish(&w);
	_exit(EXIT_SUCCESS);
}
