#define _GNU_SOURCE
#include "launcher.h"

#include "clock.h"
#include "filter_cache.h"
#include "filter_notice.h"
#include "group_sweep.h"
#include "layer.h"
#include "packet.h"
#include "privilege.h"
#include "reap.h"
#include "verdict.h"
#include "watch_tell.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIE_MS_MAX = 2000 };

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

/* Its name, its session, its signals. */
static void begin(struct watch *w, const struct run_order *order)
{
	prctl(PR_SET_NAME, "brig-launcher");
	watch_init(w, order);
	w->signals = take_signals();
}

/* Without it nobody could clean up after a launcher that was killed. */
static int say_slot(const struct watch *w, struct err *e)
{
	struct launch_message message = { .kind = LAUNCH_SLOT, .number = w->cell.slot.number };

	return watch_tell(w->client, &message, NULL, 0, e) < 0 ? err_wrap(e, "set-up step take-slot") : 0;
}

static int take_place(struct watch *w, struct err *e)
{
	if (cell_enter_rootless(&w->cell, w->order, e) < 0)
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

/* The filter that answers the program's calls; lives as long as the launcher. */
struct own_filter {
	struct filter     filter, copy;
	struct sock_fprog program, notifying;
};

/* This launcher reuses no network, so only refused calls need a notice. */
static int open_filter(struct own_filter *f, const struct run_order *order, struct err *e)
{
	if (filter_open(order->policy, order->runtime_dir, &f->filter, e) < 0 || filter_copy(&f->copy, &f->filter, e) < 0)
		return -1;
	(void)!refusal_notice_add(f->copy.insn, f->copy.len);
	f->program = (struct sock_fprog){ .len = f->filter.len, .filter = f->filter.insn };
	f->notifying = (struct sock_fprog){ .len = f->copy.len, .filter = f->copy.insn };
	return 0;
}

/* The fork server keeps the privilege that a program's way into the cell takes, until the program is on it. */
static int build(struct watch *w, struct own_filter *f, struct cell_base *base, struct forker *forker, struct err *e)
{
	if ((w->signals < 0 && err_sys(e, "set-up step watch-signals") < 0) || take_place(w, e) < 0 || open_filter(f, w->order, e) < 0)
		return -1;
	w->served            = *w->order;
	w->served.filter     = &f->program;
	w->served.notifying  = &f->notifying;
	w->order             = &w->served;
	w->cell.base         = base;
	if (cell_begin(base, w->cell.rootless.kind, e) < 0)
		return -1;
	base->mounts.trust_fd = w->order->trust_fd;
	if (cell_open(&w->cell, w->order, e) < 0)
		return -1;
	*forker             = (struct forker){ .orders          = -1,
					       .pidfd           = -1,
					       .is_for_one      = true,
					       .is_first_victim = w->cell.missing & LAYER_BIT(MEMORY),
					       .filter          = &f->program,
					       .notifying       = &f->notifying };
	w->cell.warm.forker = forker;
	if (w->order->files_fd >= 0 && files_start(&w->files, w->order->files_fd, &w->cell, w->order, e) < 0)
		return -1;
	return forker_start(forker, e);
}

/* Until they are sent, the client is gone, or it takes too long. */
static void send_files(struct watch *w)
{
	struct pollfd pid1 = { .fd = w->cell.pidfd, .events = POLLIN };
	double        end  = clock_ms(CLOCK_MONOTONIC) + FILES_SEND_MS_MAX, left;
	struct err    e;

	if (w->cell.pidfd >= 0)
		poll(&pid1, 1, DIE_MS_MAX);
	if (!files_send(&w->files, w->clock.started > 0 && w->client >= 0))
		return;
	while (w->files.state == FILES_SENDS && (left = end - clock_ms(CLOCK_MONOTONIC)) > 0) {
		struct pollfd fds[] = { { w->files.sock, POLLIN, 0 }, { w->client, 0, 0 } };

		if (poll(fds, 2, (int)left + 1) < 0 || fds[1].revents)
			break;
		if (fds[0].revents)
			(void)files_hear(&w->files, &e);
	}
	files_close(&w->files);
}

_Noreturn void launcher_main(const struct run_order *order, int sock, const struct timespec *asked)
{
	struct own_filter filter = { .program = { 0 } };
	struct forker     forker = FORKER_NONE;
	struct cell_base  base;
	struct watch      w;
	struct err        e;

	begin(&w, order);
	w.client  = sock;
	w.ordered = true;
	w.asked   = (double)asked->tv_sec * 1e3 + (double)asked->tv_nsec / 1e6;
	if (build(&w, &filter, &base, &forker, &e) < 0 || privilege_drop(&e) < 0 ||
	    (order->files_fd < 0 && cell_give_order_file(&w.cell, order, true, &e) < 0))
		watch_fail(&w, EXIT_setup_failed, &e);
	else
		watch_cell(&w);
	verdict_fill(&w);
	forker_kill(&forker);
	cell_end(&w.cell);
	send_files(&w);
	reap_all(); /* a fork that was not told of is among them: PID 1 is not gone as long as that is not reaped */
	(void)!cell_reap(&w.cell, &w.end.left);
	watch_tell_ended(&w);
	_exit(EXIT_SUCCESS);
}
