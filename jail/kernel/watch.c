#define _GNU_SOURCE
#include "watch.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "say.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SETUP_MS_MAX = 10000, CPU_CHECK_MS_LEAST = 5, CPU_RETRY_MS = 100 };

void watch_say_limit(const struct watch *w, enum exit_reason reason)
{
	static const struct {
		enum exit_reason reason;
		enum limit_id    limit;
	} rows[] = {
		{ EXIT_timeout_wall, LIMIT_wall_ms },
		{ EXIT_timeout_cpu, LIMIT_cpu_ms },
		{ EXIT_oom, LIMIT_memory_bytes },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].reason == reason)
			launcher_say_limit(w, rows[i].limit);
}

static void decide(struct watch *w, enum exit_reason reason)
{
	bool first = !w->decided;

	if (first) {
		w->decided    = true;
		w->end.reason = reason;
	}
	cell_kill(&w->cell);
	if (first)
		watch_say_limit(w, reason);
}

void watch_fail(struct watch *w, enum exit_reason reason, const struct err *why)
{
	if (!w->decided)
		w->end.why = *why;
	decide(w, reason);
}

/* What the kernel keeps from us is neither the cell's fault nor the client's, and the program may have started unheard. */
static void fail_to_watch(struct watch *w, const char *what)
{
	struct err e;

	err_sys(&e, "the launcher cannot watch: %s", what);
	watch_fail(w, EXIT_cancelled, &e);
}

/* --- the zygote --- */

/* Loud: whoever waits for a warm run shall know why it is none. */
static void go_cold(struct watch *w, const struct err *why)
{
	say("brig launcher: a run of rootfs %.12s is started cold: zygote: %s\n", w->cell.rootfs.digest, why->text);
	warm_give_up(&w->cell.warm, &w->cell);
}

/* When there is both, an order and a cell. */
static void ask_zygote(struct watch *w)
{
	struct err e;

	if (w->ready && w->cell.warm.state == WARM_WANTED && warm_ask(&w->cell.warm, &w->cell, &e) < 0)
		go_cold(w, &e);
}

static void on_zygote(struct watch *w)
{
	struct err e;

	switch (warm_hear(&w->cell.warm, &w->cell, &e)) {
	case WARM_GOES_ON:
		return;
	case WARM_CANNOT:
		go_cold(w, &e);
		return;
	case WARM_IS_LOST:
		watch_fail(w, EXIT_cancelled, &e);
		return;
	}
}

/* One that is stopped, or has more to do than it can. */
static void give_zygote_up(struct watch *w)
{
	struct err e;

	err_set(&e, ERR_LIMIT, "it did not answer within %d ms", WARM_MS_MAX);
	go_cold(w, &e);
}

/* --- from the cell's set-up --- */

static void take_streams(struct watch *w, const int *fds, size_t n)
{
	struct err e;

	if (n == pipes_count(w->order->stdin_pipe, w->order->result_pipe) && w->streams[0] < 0) {
		memcpy(w->streams, fds, n * sizeof *fds);
		return;
	}
	while (n)
		close(fds[--n]);
	err_set(&e, ERR_BROKEN, "garbled streams from the cell's set-up");
	watch_fail(w, EXIT_setup_failed, &e);
}

static void on_failed_step(struct watch *w, const struct child_report *report)
{
	struct err  e;
	const char *step = report->table <= CHILD_ENTER ? child_step_name(report->table, report->step) : NULL;

	child_explain(report, &w->cell.child, &e);
	if (step && strcmp(step, "exec") == 0)
		w->end.exec_errno = report->errnum;
	watch_fail(w, EXIT_setup_failed, &e);
}

/* End of file: who reported there has become what it should, or is dead. The program begins when that is so of both. */
static void on_report_end(struct watch *w, int *fd)
{
	struct err e;

	fd_closep(fd);
	if (w->decided || w->cell.report_fd >= 0 || w->cell.warm.report_fd >= 0)
		return;
	if (!w->execs || w->streams[0] < 0) {
		/* every step before says so itself */
		err_set(&e, ERR_SETUP, "set-up step become-init: the cell died before brig-init was ready");
		watch_fail(w, EXIT_setup_failed, &e);
		return;
	}
	w->started      = clock_ms(CLOCK_MONOTONIC);
	w->started_at   = clock_ms(CLOCK_REALTIME) / 1000;
	w->end.setup_ms = w->started - w->asked;
	launcher_say_started(w);
}

static void on_report(struct watch *w, int *fd)
{
	struct child_report report;
	int                 fds[PIPES_MAX];
	size_t              n;
	ssize_t             got = packet_receive(*fd, &report, sizeof report, fds, ARRAY_LEN(fds), &n);

	if (got != sizeof report) {
		if (got < 0)
			fail_to_watch(w, "the cell's report");
		on_report_end(w, fd);
		return;
	}
	switch (report.word) {
	case CHILD_FAILED:
		on_failed_step(w, &report);
		return;
	case CHILD_READY:
		w->ready                   = true;
		w->cell.warm.cpu_before_ns = report.cpu_before_ns;
		if (w->control >= 0)
			launcher_say_ready(w);
		ask_zygote(w);
		return;
	case CHILD_STREAMS:
		take_streams(w, fds, n);
		return;
	case CHILD_EXECS:
		w->execs        = true;
		w->setup_cpu_ns = report.cpu_ns; /* counted by now would be what the program has used since */
		return;
	}
}

/* --- from the running cell --- */

static void on_status(struct watch *w)
{
	ssize_t n = recv(w->cell.status_fd, &w->init, sizeof w->init, 0);

	if (n < 0 && errno == EINTR)
		return;
	if (n == sizeof w->init)
		w->reported = true;
	fd_closep(&w->cell.status_fd);
}

static void on_client(struct watch *w)
{
	struct launch_cancel cancel;
	ssize_t              n = recv(w->client, &cancel, sizeof cancel, 0);

	if (n == sizeof cancel && (cancel.reason == EXIT_cancelled || cancel.reason == EXIT_output_limit || cancel.reason == EXIT_client_gone)) {
		decide(w, cancel.reason);
		return;
	}
	if (n < 0 && errno == EINTR)
		return;
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

/* --- from who gives orders --- */

static void on_control_end(struct watch *w)
{
	struct err e;

	fd_closep(&w->control);
	err_set(&e, ERR_SETUP, "the keeper is gone");
	watch_fail(w, EXIT_cancelled, &e);
}

/* From a process of ours; checked all the same, for what it lets into the cell. */
static bool is_sound(const struct launch_order *o, size_t fds)
{
	return words_are_bounded(&o->words) && fds == (o->code_len ? 3 : 2);
}

static void take_order(struct watch *w, const struct launch_order *o, const int *fds)
{
	struct err e;

	w->ordered            = true;
	w->client             = fds[0];
	w->asked              = o->asked;
	w->limits             = o->limits;
	w->served.stdin_pipe  = o->stdin_pipe;
	w->served.result_pipe = o->result_pipe;
	w->served.warm        = o->warm;
	w->served.words       = &o->words;
	w->served.code_fd     = o->code_len ? fds[2] : -1;
	w->served.code_len    = o->code_len;
	if (cell_give_order(&w->cell, &w->served, &e) < 0)
		watch_fail(w, EXIT_setup_failed, &e);
	w->served.words = NULL; /* they are PID 1's now */
	ask_zygote(w);
	for (size_t i = 1; i < (o->code_len ? 3 : 2); i++)
		close(fds[i]);
}

bool watch_take_order(struct watch *w)
{
	struct launch_order order;
	int                 fds[3];
	size_t              n;
	ssize_t             got = packet_receive(w->control, &order, sizeof order, fds, ARRAY_LEN(fds), &n);

	if (got == sizeof order && !w->ordered && is_sound(&order, n)) {
		order.words.fd = fds[1];
		take_order(w, &order, fds);
		return true;
	}
	while (n)
		close(fds[--n]);
	return false;
}

static void on_control(struct watch *w)
{
	if (!watch_take_order(w))
		on_control_end(w);
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

double watch_cpu_ms(const struct watch *w, int64_t group_ns)
{
	return group_ns < 0 ? RECORD_NONE : (double)(group_ns - w->setup_cpu_ns) / 1e6;
}

static double check_cpu(struct watch *w)
{
	double used = watch_cpu_ms(w, group_cpu_ns(&w->cell.group));

	if (used < 0) /* a counter that could not be read once is looked at again */
		return group_leaf_with(&w->cell.group, GROUP_CPUACCT) ? CPU_RETRY_MS : SETUP_MS_MAX;
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

	if (!w->ordered && w->ready)
		return SETUP_MS_MAX; /* a cell may wait as long as it likes */
	if (!w->started) {
		deadline = w->asked + SETUP_MS_MAX;
		if (now >= deadline && !w->decided) {
			err_set(&e, ERR_SETUP, "the cell was not built within %d s", SETUP_MS_MAX / 1000);
			watch_fail(w, EXIT_setup_failed, &e);
		}
		if (w->cell.warm.state != WARM_ASKED)
			return deadline - now;
		if (now >= w->cell.warm.asked + WARM_MS_MAX)
			give_zygote_up(w);
		return WARM_MS_MAX / 2;
	}
	deadline = w->started + (double)w->order->limits->wall_ms;
	if (now >= deadline)
		decide(w, EXIT_timeout_wall);
	if (now >= *next_cpu)
		*next_cpu = now + check_cpu(w);
	return (deadline < *next_cpu ? deadline : *next_cpu) - now;
}

void watch_cell(struct watch *w)
{
	double next_cpu = 0;

	for (;;) {
		double        left  = w->decided ? 1000 : check_clocks(w, &next_cpu);
		struct pollfd fds[] = {
			{ w->cell.pidfd, POLLIN, 0 },     { w->cell.report_fd, POLLIN, 0 }, { w->cell.status_fd, POLLIN, 0 },
			{ w->cell.oom_fd, POLLIN, 0 },    { w->client, POLLIN, 0 },         { w->signals, POLLIN, 0 },
			{ w->control, POLLIN, 0 },        { w->cell.warm.answer_fd, POLLIN, 0 }, { w->cell.warm.report_fd, POLLIN, 0 },
		};

		if (poll(fds, ARRAY_LEN(fds), left < 0 ? 0 : left > 60000 ? 60000 : (int)left + 1) < 0 && errno != EINTR) {
			fail_to_watch(w, "poll");
			return;
		}
		if (fds[1].revents)
			on_report(w, &w->cell.report_fd);
		if (fds[8].revents)
			on_report(w, &w->cell.warm.report_fd);
		if (fds[2].revents)
			on_status(w);
		if (fds[3].revents)
			on_oom(w);
		if (fds[4].revents)
			on_client(w);
		if (fds[5].revents)
			on_signal(w);
		if (fds[6].revents)
			on_control(w);
		if (fds[7].revents && fds[7].fd == w->cell.warm.answer_fd)
			on_zygote(w);
		if (fds[0].revents && w->cell.report_fd < 0 && w->cell.status_fd < 0)
			return;
	}
}
