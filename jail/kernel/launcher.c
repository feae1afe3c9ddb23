#define _GNU_SOURCE
#include "launcher.h"

#include "cell.h"
#include "clock.h"
#include "fd.h"
#include "privilege.h"
#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETUP_MS_MAX = 10000, CPU_CHECK_MS_LEAST = 5 };

/* One run as its launcher sees it. */
struct watch {
	const struct run_order *order;
	struct cell             cell;
	struct run_end          end;
	int                     client, signals;
	int                     streams[3];
	double                  asked, started; /* CLOCK_MONOTONIC ms; started 0 until the program runs */
	double                  started_at;
	int64_t                 setup_cpu_ns; /* spent in the cell before the program: not its own */
	bool                    execs, decided, reported, oom;
	struct init_report      init;
};

/* The first reason stays: what comes later is its consequence. */
static void decide(struct watch *w, enum exit_reason reason)
{
	if (!w->decided) {
		w->decided    = true;
		w->end.reason = reason;
	}
	cell_kill(&w->cell);
}

static void fail(struct watch *w, enum exit_reason reason, const struct err *why)
{
	if (!w->decided)
		w->end.why = *why;
	decide(w, reason);
}

/* --- to the client --- */

static void say(int sock, const struct launch_word *word, const int *fds, size_t n)
{
	union {
		struct cmsghdr head;
		char           room[CMSG_SPACE(3 * sizeof(int))];
	} control = { 0 };
	struct iovec  io  = { (void *)word, sizeof *word };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1 };

	if (n) {
		msg.msg_control    = control.room;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *c  = CMSG_FIRSTHDR(&msg);
		c->cmsg_level      = SOL_SOCKET;
		c->cmsg_type       = SCM_RIGHTS;
		c->cmsg_len        = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	(void)!sendmsg(sock, &msg, MSG_NOSIGNAL); /* a client that is gone is noticed by poll */
}

static void say_slot(const struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_SLOT, .number = w->cell.slot.number };

	say(w->client, &word, NULL, 0);
}

static void say_started(struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_STARTED };

	say(w->client, &word, w->streams, w->order->stdin_pipe ? 3 : 2);
	for (size_t i = 0; i < ARRAY_LEN(w->streams); i++)
		fd_closep(&w->streams[i]);
}

static void say_ended(const struct watch *w)
{
	struct launch_word word = { .kind = LAUNCH_ENDED, .end = w->end };

	say(w->client, &word, NULL, 0);
}

/* --- from the cell's set-up --- */

static void take_streams(struct watch *w, struct msghdr *msg)
{
	size_t          want = w->order->stdin_pipe ? 3 : 2;
	struct cmsghdr *c    = CMSG_FIRSTHDR(msg);

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || msg->msg_flags & MSG_CTRUNC ||
	    c->cmsg_len != CMSG_LEN(want * sizeof(int)) || w->streams[0] >= 0) {
		struct err e;

		err_set(&e, ERR_BROKEN, "garbled streams from the cell's set-up");
		fail(w, EXIT_setup_failed, &e);
		return;
	}
	memcpy(w->streams, CMSG_DATA(c), want * sizeof(int));
}

static void on_failed_step(struct watch *w, const struct child_report *report)
{
	struct err  e;
	const char *step = report->table <= CHILD_PROGRAM ? child_step_name(report->table, report->step) : NULL;

	child_explain(report, &w->cell.child, &e);
	if (step && strcmp(step, "exec") == 0)
		w->end.exec_errno = report->errnum;
	fail(w, EXIT_setup_failed, &e);
}

/* End of file: both processes have become what they should, or are dead. */
static void on_report_end(struct watch *w)
{
	struct err e;

	fd_closep(&w->cell.report_fd);
	if (w->decided)
		return;
	if (!w->execs || w->streams[0] < 0) {
		err_set(&e, ERR_SETUP, "the cell died during its set-up");
		fail(w, EXIT_setup_failed, &e);
		return;
	}
	w->started      = clock_ms(CLOCK_MONOTONIC);
	w->started_at   = clock_ms(CLOCK_REALTIME) / 1000;
	w->end.setup_ms = w->started - w->asked;
	say_started(w);
}

static void on_report(struct watch *w)
{
	struct child_report report;
	char                room[CMSG_SPACE(3 * sizeof(int))];
	struct iovec        io  = { &report, sizeof report };
	struct msghdr       msg = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	ssize_t             n   = recvmsg(w->cell.report_fd, &msg, MSG_CMSG_CLOEXEC);

	if (n != sizeof report) {
		on_report_end(w);
		return;
	}
	switch (report.word) {
	case CHILD_FAILED:
		on_failed_step(w, &report);
		return;
	case CHILD_STREAMS:
		take_streams(w, &msg);
		return;
	case CHILD_EXECS:
		w->execs        = true;
		w->setup_cpu_ns = group_cpu_ns(&w->cell.group);
		return;
	}
}

/* --- from the running cell --- */

static void on_status(struct watch *w)
{
	ssize_t n = recv(w->cell.status_fd, &w->init, sizeof w->init, 0);

	if (n == sizeof w->init)
		w->reported = true;
	fd_closep(&w->cell.status_fd);
}

static void on_client(struct watch *w)
{
	struct launch_cancel cancel;
	ssize_t              n = recv(w->client, &cancel, sizeof cancel, 0);

	if (n == sizeof cancel && (cancel.reason == EXIT_cancelled || cancel.reason == EXIT_output_limit)) {
		decide(w, cancel.reason);
		return;
	}
	decide(w, EXIT_client_gone);
	fd_closep(&w->client);
}

static void on_signal(struct watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->signals, &info, sizeof info) == sizeof info)
		decide(w, EXIT_cancelled);
}

static void on_oom(struct watch *w)
{
	uint64_t count;

	if (read(w->cell.oom_fd, &count, sizeof count) == sizeof count && w->cell.group.n) {
		w->oom = true;
		decide(w, EXIT_oom); /* half a process tree is worse than none */
	}
}

/* --- the clocks --- */

/* When to look again: the limit cannot be reached sooner than by every CPU spinning. */
static double next_cpu_check(const struct watch *w, double used_ms)
{
	double left = (double)w->order->limits->cpu_ms - used_ms;
	double cpus = (double)w->order->limits->cpus / 1000;
	double wait = left / (cpus < 1 ? 1 : cpus);

	return wait < CPU_CHECK_MS_LEAST ? CPU_CHECK_MS_LEAST : wait;
}

/* Of the program, out of what the group has counted; negative when this host does not count. */
static double cpu_ms(const struct watch *w, int64_t group_ns)
{
	return group_ns < 0 ? RECORD_NONE : (double)(group_ns - w->setup_cpu_ns) / 1e6;
}

static double check_cpu(struct watch *w)
{
	double used = cpu_ms(w, group_cpu_ns(&w->cell.group));

	if (used < 0)
		return SETUP_MS_MAX;
	if (used >= (double)w->order->limits->cpu_ms) {
		decide(w, EXIT_timeout_cpu);
		return SETUP_MS_MAX;
	}
	return next_cpu_check(w, used);
}

static double check_clocks(struct watch *w, double *next_cpu)
{
	double     now = clock_ms(CLOCK_MONOTONIC), deadline;
	struct err e;

	if (!w->started) {
		deadline = w->asked + SETUP_MS_MAX;
		if (now >= deadline && !w->decided) {
			err_set(&e, ERR_SETUP, "the cell was not built within %d s", SETUP_MS_MAX / 1000);
			fail(w, EXIT_setup_failed, &e);
		}
		return deadline - now;
	}
	deadline = w->started + (double)w->order->limits->wall_ms;
	if (now >= deadline)
		decide(w, EXIT_timeout_wall);
	if (now >= *next_cpu)
		*next_cpu = now + check_cpu(w);
	return (deadline < *next_cpu ? deadline : *next_cpu) - now;
}

/* Until PID 1 is gone, and with it every process of the cell. */
static void watch_cell(struct watch *w)
{
	double next_cpu = 0;

	for (;;) {
		struct pollfd fds[] = {
			{ w->cell.pidfd, POLLIN, 0 },     { w->cell.report_fd, POLLIN, 0 }, { w->cell.status_fd, POLLIN, 0 },
			{ w->cell.oom_fd, POLLIN, 0 },    { w->client, POLLIN, 0 },         { w->signals, POLLIN, 0 },
		};
		double left = w->decided ? 1000 : check_clocks(w, &next_cpu);

		if (poll(fds, ARRAY_LEN(fds), left < 0 ? 0 : left > 60000 ? 60000 : (int)left + 1) < 0 && errno != EINTR)
			decide(w, EXIT_client_gone);
		if (fds[1].revents)
			on_report(w);
		if (fds[2].revents)
			on_status(w);
		if (fds[3].revents)
			on_oom(w);
		if (fds[4].revents)
			on_client(w);
		if (fds[5].revents)
			on_signal(w);
		if (fds[0].revents && w->cell.report_fd < 0 && w->cell.status_fd < 0)
			return;
	}
}

/* --- the end --- */

static void add_hit(struct run_end *end, enum limit_id limit, int64_t value, int64_t peak, int64_t times)
{
	if (end->hits < ARRAY_LEN(end->hit))
		end->hit[end->hits++] = (struct run_hit){ limit, value, peak, times };
}

/* tmpfs does not count what it refused: that it was full when the program ended is all that can be known. */
static void note_full_mounts(struct watch *w)
{
	const struct limits *l    = w->order->limits;
	uint64_t             full = 0, inodes = 0;

	for (uint32_t i = 0; i < w->init.mounts_read && i < INIT_MOUNTS; i++) {
		if (w->init.free_bytes[i] == 0)
			full |= 1u << i;
		inodes |= w->init.free_inodes[i] == 0;
	}
	if (full & 3)
		add_hit(&w->end, LIMIT_tmp_bytes, (int64_t)l->tmp_bytes, (int64_t)l->tmp_bytes, -1);
	if (full & 4)
		add_hit(&w->end, LIMIT_workspace_bytes, (int64_t)l->workspace_bytes, (int64_t)l->workspace_bytes, -1);
	if (inodes)
		add_hit(&w->end, LIMIT_inodes, (int64_t)l->inodes, (int64_t)l->inodes, -1);
}

static void note_usage(struct watch *w)
{
	struct group_usage u;

	group_read(&w->cell.group, &u);
	w->end.cpu_ms            = cpu_ms(w, u.cpu_ns);
	w->end.memory_peak_bytes = u.memory_peak;
	w->end.pids_peak         = u.pids_peak > 0 ? u.pids_peak - 1 : u.pids_peak; /* PID 1 is ours */
	w->end.io_read_bytes     = u.io_read;
	w->end.io_write_bytes    = u.io_write;
	if (u.pids_refused > 0)
		add_hit(&w->end, LIMIT_pids, (int64_t)w->order->limits->pids, w->end.pids_peak, u.pids_refused);
	w->oom |= u.oom_kills > 0;
}

/* What ended the program, when nothing that we did: the kernel's words only. */
static void judge(struct watch *w)
{
	bool killed;

	if (w->decided)
		return;
	if (!w->reported) { /* PID 1 was killed, which nothing inside can do */
		w->end.reason      = w->oom ? EXIT_oom : EXIT_signaled;
		w->end.wait_status = SIGKILL;
		return;
	}
	w->end.wait_status = w->init.status;
	killed             = WIFSIGNALED(w->init.status);
	if (w->oom)
		w->end.reason = EXIT_oom;
	else if (killed && w->end.cpu_ms >= (double)w->order->limits->cpu_ms)
		w->end.reason = EXIT_timeout_cpu; /* RLIMIT_CPU was faster than our clock */
	else
		w->end.reason = killed ? EXIT_signaled : EXIT_exited;
}

static void finish(struct watch *w)
{
	if (w->started) {
		w->end.wall_ms    = clock_ms(CLOCK_MONOTONIC) - w->started;
		w->end.started_at = w->started_at;
		w->end.layers     = w->cell.layers;
		w->end.missing    = w->cell.missing;
		memcpy(w->end.missing_why, w->cell.missing_why, sizeof w->end.missing_why);
		note_usage(w);
		note_full_mounts(w);
	}
	judge(w);
	if (w->end.reason != EXIT_exited && w->end.reason != EXIT_signaled)
		w->end.wait_status = -1;
	(void)!cell_close(&w->cell, &w->end.left);
	say_ended(w);
}

/* Terminal keys go to the client; an end asked of us by signal is a cancel. What else the caller left does not matter. */
static int take_signals(void)
{
	sigset_t set;

	setsid();
	umask(022); /* under 0777 what we make is shut to ourselves, once privilege is dropped */
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
	for (uint32_t first = 0;; first = w->cell.slot.number + 1) {
		if (cell_take_slot(&w->cell, w->order, first, e) < 0)
			return -1;
		say_slot(w);
		switch (cell_make_groups(&w->cell, w->order, e)) {
		case GROUP_MADE:
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
		fail(w, EXIT_setup_failed, &e);
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
		.end     = { .wait_status = -1, .wall_ms = -1, .cpu_ms = -1, .setup_ms = -1, .started_at = -1, .memory_peak_bytes = -1,
			     .pids_peak = -1, .io_read_bytes = -1, .io_write_bytes = -1 },
	};

	prctl(PR_SET_NAME, "brig-launcher");
	cell_init(&w.cell);
	w.signals = take_signals();
	build_and_watch(&w);
	finish(&w);
	_exit(EXIT_SUCCESS);
}
