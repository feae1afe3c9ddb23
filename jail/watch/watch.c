#define _GNU_SOURCE
#include "watch_parts.h"

#include "clock.h"
#include "fd.h"
#include "layer.h"
#include "packet.h"
#include "watch_tell.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SETUP_MS_MAX = 10000, KILL_MS_MAX = 1000, OOM_MS = 20, CPU_CHECK_MS_LEAST = 5, CPU_RETRY_MS = 100 };

void watch_init(struct watch *w)
{
	*w = (struct watch){ .client = -1, .control = -1, .ticket = -1, .unread = -1, .streams = { -1, -1, -1, -1 }, .end = RUN_END_NONE, .files = FILES_INIT };
	cell_init(&w->cell);
}

void watch_close(struct watch *w)
{
	fd_closep(&w->client);
	fd_closep(&w->control);
	fd_closep(&w->ticket);
	files_close(&w->files);
	for (size_t i = 0; i < ARRAY_LEN(w->streams); i++)
		fd_closep(&w->streams[i]);
}

/* An eighth is more than a run may have left when it meets its limit: the mark of version 2, a huge page that does not fit. */
bool watch_reached_memory(const struct watch *w)
{
	struct group_usage u;

	group_read(&w->cell.group, &u);
	return u.memory_peak < 0 || (uint64_t)u.memory_peak >= w->order.limits->memory_bytes / 8 * 7;
}

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

	if (reason == EXIT_oom && !watch_reached_memory(w))
		return; /* none of the run's */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].reason == reason)
			watch_tell_limit(w, rows[i].limit);
}

void watch_decide(struct watch *w, enum exit_reason reason)
{
	bool first;

	if (!watch_awaits_order(w))
		watch_take_late_order(w); /* which may decide by itself */
	first = !w->decided;
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
	watch_decide(w, reason);
}

/* What the kernel does not say is neither the cell's fault nor the client's, and the program may have started unheard. */
static void fail_to_watch(struct watch *w, const char *what)
{
	struct err e;

	err_sys(&e, "the run cannot be watched: %s", what);
	watch_fail(w, EXIT_cancelled, &e);
}

/* --- from the cell's set-up --- */

static void on_failed_step(struct watch *w, const struct child_report *report)
{
	struct err e;
	int        errnum = child_exec_errno(report);

	child_explain(report, &w->cell.child, &e);
	if (errnum)
		w->end.exec_errno = errnum;
	watch_fail(w, EXIT_setup_failed, &e);
}

/* In the place of a program a session has nothing: files of that name are its own to make. Without the right to this there is none. */
static void begin_session(struct watch *w)
{
	int workspace = w->cell.warm.prepared[PREPARED_MOUNTS + CELL_MOUNTS - 1];

	(void)!unlinkat(workspace, "main.py", 0);
	watch_tell_session(w);
}

void watch_begin(struct watch *w)
{
	w->clock.started      = clock_ms(CLOCK_MONOTONIC);
	w->started_at   = clock_ms(CLOCK_REALTIME) / 1000;
	w->end.setup_ms = w->clock.started - w->asked;
	if (w->session_ms)
		begin_session(w);
}

/* Twice of a cell that was built before there was a zygote: the second time with its ticket. A dying one gives none. */
void watch_say_ready(struct watch *w)
{
	bool has_ticket = w->ticket < 0 && w->cell.warm.state != WARM_PREPARED;

	w->ready = true;
	if (w->control < 0 || w->decided)
		return;
	if (has_ticket && w->cell.group.files && !group_begin_peak(&w->cell.group))
		watch_decide(w, EXIT_cancelled); /* its groups are of no use: the keeper makes others */
	else
		watch_tell_ready(w);
}

/* PID 1 is dead. A fork that executes has done so with its last step; every step before says so itself when it fails. */
static void on_report_end(struct watch *w, int *fd)
{
	struct err e;

	fd_closep(fd);
	if (fd == &w->cell.report_fd && !w->cell.warm.is_hard) {
		err_set(&e, ERR_SETUP, "set-up step become-init: the cell died before brig-init was ready");
		watch_fail(w, EXIT_setup_failed, &e);
	}
	if (fd == &w->cell.warm.report_fd)
		watch_warm_begins(w);
}

/* Without it the network may not be used again. Of a second fork, whose filter is another one, too. */
static void take_listener(struct watch *w, const int *fds, size_t n)
{
	if (w->cell.is_noticed || n != 1)
		w->cell.notice.was_given = true;
	w->cell.is_noticed = true;
	notice_close(&w->cell.notice);
	if (n)
		w->cell.notice.listener_fd = fds[--n];
	while (n)
		close(fds[--n]);
}

static void on_report(struct watch *w, int *fd)
{
	struct child_report report;
	int                 fds[PREPARED_FDS];
	size_t              n;
	ssize_t             got = packet_receive(*fd, &report, sizeof report, fds, ARRAY_LEN(fds), &n);

	if (got == 1 && fd == &w->cell.report_fd) {
		packet_drop(fds, n);
		watch_warm_hard(w);
		return;
	}
	if (got != sizeof report) {
		if (got < 0)
			fail_to_watch(w, "the cell's report");
		on_report_end(w, fd);
		return;
	}
	if (report.message != CHILD_PREPARED && report.message != CHILD_LISTENER)
		packet_drop(fds, n);
	switch (report.message) {
	case CHILD_FAILED:
		on_failed_step(w, &report);
		return;
	case CHILD_PREPARED:
		w->cell.warm.cpu_before_ns = report.cpu_before_ns;
		watch_warm_prepared(w, fds, n);
		return;
	case CHILD_LISTENER:
		take_listener(w, fds, n);
		return;
	case CHILD_EXECS:
		w->setup_cpu_ns = report.cpu_ns; /* counted by now would be what the program has used since */
		w->execs        = report.detail == CHILD_DETAIL_EXECS;
		watch_warm_stands(w);
		return;
	}
}

void watch_hear_cell(struct watch *w)
{
	on_report(w, &w->cell.report_fd);
}

void watch_hear_fork(struct watch *w)
{
	on_report(w, &w->cell.warm.report_fd);
}

/* --- from the running cell --- */

/* Nothing waits for a frozen process, but what is sent to it next: its end comes as ever, and the clocks are others'. */
static void freeze(struct watch *w, bool is)
{
	if (w->is_frozen == is || !group_freeze(&w->cell.group, is))
		return;
	w->is_frozen = is;
	watch_tell_session(w);
}

/* False: it makes no sense. fd: what came with it, if something did; taken where it is of use. */
static bool hear_ask(struct watch *w, const struct launch_ask *ask, int *fd)
{
	if ((ask->kind == LAUNCH_NETWORK) != (*fd >= 0))
		return false;
	switch (ask->kind) {
	case LAUNCH_CANCEL:
		if (ask->reason != EXIT_cancelled && ask->reason != EXIT_output_limit && ask->reason != EXIT_client_gone)
			return false;
		watch_decide(w, ask->reason);
		return true;
	case LAUNCH_WAITS:
	case LAUNCH_GOES_ON:
		wall_clock_wait(&w->clock, ask->kind == LAUNCH_WAITS, clock_ms(CLOCK_MONOTONIC));
		return true;
	case LAUNCH_FREEZE:
	case LAUNCH_THAW:
		if (!w->session_ms)
			return false;
		freeze(w, ask->kind == LAUNCH_FREEZE);
		return true;
	case LAUNCH_STAYS:
		if (ask->ms == 0 || ask->ms > w->lifetime_ms_max || w->session_ms)
			return false;
		w->session_ms = ask->ms;
		if (w->clock.started)
			begin_session(w);
		return true;
	case LAUNCH_NETWORK:
		net_sockets_ask(&w->cell.sockets, fd_take(fd));
		return true;
	}
	return false;
}

static ssize_t receive_ask(struct watch *w, struct launch_ask *ask, int *fd)
{
	size_t n;

	if (!packet_is_there(w->client)) {
		errno = EAGAIN;
		return -1;
	}
	return packet_receive(w->client, ask, sizeof *ask, fd, 1, &n);
}

static void on_client(struct watch *w)
{
	struct launch_ask ask;
	scoped_fd         fd = -1;
	ssize_t           n  = receive_ask(w, &ask, &fd);

	if (n == sizeof ask && hear_ask(w, &ask, &fd))
		return;
	if (n < 0 && errno == EAGAIN)
		return;
	watch_decide(w, EXIT_client_gone);
	fd_closep(&w->client);
}

/* The event comes as well when a group above the cell's has no memory: the kernel then kills what it will, in the cell or elsewhere. */
static void end_for_memory(struct watch *w)
{
	if (w->session_ms && watch_kill_victim(w)) {
		watch_tell_session(w);
		w->next_oom = clock_ms(CLOCK_MONOTONIC) + OOM_MS; /* it takes a moment to end, and the others that wait have events of their own */
		group_ask_again(&w->cell.oom);
		return;
	}
	w->oom = true;
	watch_decide(w, EXIT_oom); /* half a process tree is worse than none */
}

static void on_oom(struct watch *w)
{
	if (group_has_no_memory(&w->cell.group, &w->cell.oom))
		end_for_memory(w);
}

static void on_oom_helper(struct watch *w)
{
	if (group_helper_says(&w->cell.oom))
		end_for_memory(w);
	w->next_oom = clock_ms(CLOCK_MONOTONIC) + OOM_MS;
}

static void on_notice(struct watch *w)
{
	notice_hear(&w->cell.notice, w->order.filter, &w->end.refused);
}

/* The program has begun to use its network. */
static void on_network(struct watch *w)
{
	net_sockets_give(&w->cell.sockets);
}

/* --- from the control socket and the client --- */

static void on_control_end(struct watch *w)
{
	struct err e;

	fd_closep(&w->control);
	err_set(&e, ERR_SETUP, "the keeper is gone");
	watch_fail(w, EXIT_cancelled, &e);
}

static bool says_yes_or_no(const struct launch_order *o)
{
	return o->stdin_pipe <= 1 && o->result_pipe <= 1 && o->tools <= 1 && o->warm <= 1;
}

/* From a process of brig; checked all the same, for what it lets into the cell. */
static bool is_sound(const struct launch_order *o, size_t fds)
{
	return exec_args_are_bounded(&o->exec_args) && says_yes_or_no(o) && fds == 2 + !!o->code_len + o->tools;
}

static void take_figures(struct watch *w, const struct launch_order *o)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	w->ordered            = true;
	w->unread             = -1;
	w->asked              = o->asked <= now ? o->asked : now; /* a set-up from the future, or of no time at all, would never be late */
	w->limits             = o->limits;
	w->order.stdin_pipe  = o->stdin_pipe;
	w->order.result_pipe = o->result_pipe;
}

/* Where a zygote was asked already its fork executes what is cold, but finds the main.py that a command has not; the keeper knows. */
static int give_order(struct watch *w, bool warm, struct err *e)
{
	bool is_asked = w->cell.warm.state > WARM_PREPARED;

	w->is_warm_order = warm && (is_asked || warm_is_possible(&w->cell.warm));
	if (is_asked && w->order.code_fd < 0)
		return err_set(e, ERR_SETUP, "the cell is not for commands");
	return cell_give_order_file(&w->cell, &w->order, !warm, e);
}

static void carry_out(struct watch *w, bool warm)
{
	struct err e;

	if (give_order(w, warm, &e) < 0)
		watch_fail(w, EXIT_setup_failed, &e);
	else
		watch_warm_ordered(w);
}

static void take_order(struct watch *w, const struct launch_order *o, const int *fds, bool is_late)
{
	take_figures(w, o);
	fd_closep(&w->ticket); /* what comes from its other end is too late */
	w->client          = fds[0];
	w->order.exec_args = &o->exec_args;
	w->order.code_fd  = o->code_len ? fds[2] : -1;
	w->order.code_len = o->code_len;
	w->order.tools_fd = o->tools ? fds[2 + !!o->code_len] : -1;
	if (!is_late)
		carry_out(w, o->warm);
	w->order.exec_args = NULL; /* they are in the cell's hands now */
	w->order.tools_fd = -1;
	for (size_t i = 1; i < 2u + !!o->code_len + o->tools; i++)
		close(fds[i]);
}

/* What a ticket is good for: the cell as it was built, or less of what a clock ends. */
static bool is_within_ticket(const struct watch *w, const struct limits *asked)
{
	struct limits built = w->limits;

	built.cpu_ms       = asked->cpu_ms <= built.cpu_ms ? asked->cpu_ms : built.cpu_ms;
	built.wall_ms      = asked->wall_ms <= w->wall_ms_max ? asked->wall_ms : built.wall_ms;
	built.output_bytes = asked->output_bytes; /* the reader of the output holds to it */
	built.tool_wait_ms = asked->tool_wait_ms <= w->tool_wait_ms_max ? asked->tool_wait_ms : built.tool_wait_ms;
	built.idle_ms      = asked->idle_ms; /* these two are the door's clocks; how long a session may stay is checked when it asks for that */
	built.lifetime_ms  = asked->lifetime_ms;
	if (!limits_must_is_sane(asked) || asked->must & w->cell.missing)
		return false;
	if (w->cell.missing & LAYER_BIT(MEMORY) && asked->waived != built.waived)
		return false; /* the fork has its RLIMIT_DATA */
	built.must   = asked->must;
	built.waived = asked->waived;
	return memcmp(&built, asked, sizeof built) == 0;
}

bool watch_take_ticket(struct watch *w)
{
	struct launch_order o;
	struct err          e;
	size_t              n;
	ssize_t             got = packet_receive(w->ticket, &o, sizeof o, NULL, 0, &n);

	if (got != sizeof o || w->ordered) {
		fd_closep(&w->ticket);
		return false;
	}
	w->client      = fd_take(&w->ticket);
	w->tell_taken = clock_ms(CLOCK_MONOTONIC) + LAUNCH_TAKEN_MS;
	if (!is_within_ticket(w, &o.limits) || !says_yes_or_no(&o)) {
		w->ordered = true;
		err_set(&e, ERR_DENIED, "more was asked of a cell that stands ready than it was built for");
		watch_fail(w, EXIT_denied, &e);
		return true;
	}
	take_figures(w, &o);
	w->is_warm_order    = o.warm;
	w->has_ticket_order = true;
	watch_warm_ordered(w);
	return true;
}

/* False when it is no order, but the end of the process that gives them. */
static bool hear_order(struct watch *w, bool is_late)
{
	struct launch_order order;
	int                 fds[4];
	size_t              n;
	ssize_t             got = packet_receive(w->control, &order, sizeof order, fds, ARRAY_LEN(fds), &n);

	if (got == sizeof order && !w->ordered && is_sound(&order, n)) {
		order.exec_args.fd = fds[1];
		take_order(w, &order, fds, is_late);
		return true;
	}
	while (n)
		close(fds[--n]);
	return false;
}

bool watch_awaits_order(const struct watch *w)
{
	return w->awaited && !w->ordered && w->control >= 0;
}

void watch_take_late_order(struct watch *w)
{
	if (w->ticket >= 0 && !w->ordered) {
		shutdown(w->ticket, SHUT_RD);
		(void)watch_take_ticket(w);
	}
	if (w->control < 0 || w->ordered)
		return;
	shutdown(w->control, SHUT_RD);
	(void)hear_order(w, true);
}

/* A ticket that was closed unused is returned: the keeper may use the cell for another run. */
static void on_ticket(struct watch *w)
{
	if (!watch_take_ticket(w) && !w->ordered && !w->decided)
		watch_tell_returned(w);
}

static void on_control(struct watch *w)
{
	if (!hear_order(w, false))
		on_control_end(w);
}

/* --- the files --- */

static void on_files(struct watch *w)
{
	struct err e;

	switch (files_hear(&w->files, &e)) {
	case FILES_GO_ON:
	case FILES_FILLED: /* the order is read now */
	case FILES_DONE:
		return;
	case FILES_FAILED:
		if (!w->clock.started) /* else it is missed when its files are due */
			watch_fail(w, EXIT_setup_failed, &e);
		return;
	}
}

/* --- the clocks --- */

static double least(double a, double b)
{
	return a < b ? a : b;
}

/* When to look again: the limit cannot be reached sooner than by every CPU spinning. */
static double next_cpu_check(const struct watch *w, double used_ms)
{
	double left = (double)w->order.limits->cpu_ms - used_ms;
	double cpus = (double)w->order.limits->cpus / 1000;
	double wait = left / (cpus < 1 ? 1 : cpus);

	return wait < CPU_CHECK_MS_LEAST ? CPU_CHECK_MS_LEAST : wait;
}

double watch_cpu_ms(const struct watch *w, int64_t group_ns)
{
	return group_ns < 0 ? RECORD_NONE : (double)(group_ns - w->setup_cpu_ns) / 1e6;
}

static double check_cpu(struct watch *w)
{
	double used;

	if (w->session_ms) /* the limit is that of each call */
		return SETUP_MS_MAX;
	used = watch_cpu_ms(w, group_cpu_ns(&w->cell.group));

	if (used < 0) /* a counter that could not be read once is looked at again */
		return group_leaf_with(&w->cell.group, GROUP_CPUACCT) ? CPU_RETRY_MS : SETUP_MS_MAX;
	if (used >= (double)w->order.limits->cpu_ms) {
		watch_decide(w, EXIT_timeout_cpu);
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

static double wall_end(const struct watch *w, double now)
{
	return w->session_ms ? w->clock.started + (double)w->session_ms : wall_clock_end(&w->clock, w->order.limits, now);
}

static double check_clocks(struct watch *w)
{
	double     now = clock_ms(CLOCK_MONOTONIC), deadline, patience;
	struct err e;

	if (w->files.state == FILES_FILLS && now >= w->asked + SETUP_MS_MAX && !w->decided) {
		err_set(&e, ERR_SETUP, "files: they did not come within %d s", SETUP_MS_MAX / 1000);
		watch_fail(w, EXIT_setup_failed, &e);
	}
	if (!w->ordered && w->ready)
		return SETUP_MS_MAX; /* a cell may wait as long as it likes */
	if (!w->clock.started) {
		patience = watch_warm_patience(w, now);
		if (!w->ordered && w->cell.warm.state == WARM_ASKED)
			return patience; /* the zygote may have much to import */
		deadline = w->asked + SETUP_MS_MAX;
		if (now >= deadline && !w->decided) {
			err_set(&e, ERR_SETUP, "%s within %d s", what_is_late(&w->cell.warm),
				SETUP_MS_MAX / 1000);
			watch_fail(w, EXIT_setup_failed, &e);
		}
		return least(deadline - now, patience);
	}
	deadline = wall_end(w, now);
	if (now >= deadline)
		watch_decide(w, EXIT_timeout_wall);
	if (now >= w->next_cpu)
		w->next_cpu = now + check_cpu(w);
	return least(deadline, w->next_cpu) - now;
}

static double check_taken(struct watch *w, double left)
{
	double now = w->tell_taken > 0 ? clock_ms(CLOCK_MONOTONIC) : 0;

	if (w->tell_taken <= 0)
		return left;
	if (now < w->tell_taken)
		return least(left, w->tell_taken - now);
	watch_tell_taken(w);
	return left;
}

/* In this order: what a ticket brings is before what came of it, and what a process said before its end. */
static const struct source {
	size_t fd; /* in struct watch */
	void (*hear)(struct watch *);
} sources[] = {
#define AT(member) offsetof(struct watch, member)
	{ AT(ticket), on_ticket },
	{ AT(cell.report_fd), watch_hear_cell },
	{ AT(cell.warm.report_fd), watch_hear_fork },
	{ AT(unread), watch_warm_read }, /* after what the fork said before it read */
	{ AT(cell.notice.heard_fd), on_notice },
	{ AT(cell.sockets.used_fd), on_network },
	{ AT(cell.oom.fd), on_oom },
	{ AT(cell.oom.helper_fd), on_oom_helper },
	{ AT(files.sock), on_files },
	{ AT(control), on_control }, /* a keeper that is gone is the reason, the door's cancel a consequence */
	{ AT(client), on_client },
	{ AT(cell.warm.answer_fd), watch_warm_hear },
	{ AT(cell.warm.program_fd), watch_warm_program },
#undef AT
};

/* When all is decided nothing more is read: watch_take_late_order() has read what there was, or will. */
static bool is_heard(const struct watch *w, const struct source *s)
{
	if (s->hear == on_control && w->files.state == FILES_FILLS) /* the order waits until the program's files are there */
		return false;
	return !w->decided || (s->hear != on_control && s->hear != on_client);
}

static int fd_of(const struct watch *w, const struct source *s)
{
	if (s->hear == on_oom && (w->cell.oom.helper_fd >= 0 || w->next_oom > 0))
		return -1;
	if (s->hear == on_network && w->cell.sockets.to < 0) /* they are not asked for yet */
		return -1;
	if (s->hear == watch_hear_cell && w->cell.warm.is_hard) /* beside a program nothing is read that PID 1 says */
		return -1;
	return is_heard(w, s) ? *(const int *)((const char *)w + s->fd) : -1;
}

/* One that an earlier one has closed, or replaced, is heard at the next turn. */
static void hear(struct watch *w, const struct pollfd *fds)
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		if (fds[i].revents && fd_of(w, &sources[i]) == fds[i].fd)
			sources[i].hear(w);
}

_Static_assert(WATCH_FDS == ARRAY_LEN(sources) + 1, "the last one is PID 1");

static double check_oom(struct watch *w, double left)
{
	double rest = w->next_oom > 0 ? w->next_oom - clock_ms(CLOCK_MONOTONIC) : 0;

	if (rest <= 0)
		w->next_oom = 0;
	return rest > 0 ? least(left, rest) : left;
}

double watch_left(struct watch *w)
{
	double left = w->decided ? KILL_MS_MAX : check_clocks(w);

	if (w->decided || w->clock.started) /* no cell ends before its fork server has told of the fork, or is gone */
		left = least(left, watch_warm_patience(w, clock_ms(CLOCK_MONOTONIC)));
	left = check_oom(w, left);
	return check_taken(w, notice_turn(&w->cell.notice, left));
}

void watch_fds(const struct watch *w, struct pollfd fds[WATCH_FDS])
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		fds[i] = (struct pollfd){ .fd = fd_of(w, &sources[i]), .events = sources[i].hear == on_oom ? w->cell.oom.events : POLLIN };
	fds[ARRAY_LEN(sources)] = (struct pollfd){ .fd = w->cell.pidfd, .events = POLLIN };
}

bool watch_hear(struct watch *w, const struct pollfd fds[WATCH_FDS])
{
	hear(w, fds);
	return !w->is_alone && !(fds[ARRAY_LEN(sources)].revents && (w->cell.warm.is_hard || w->cell.report_fd < 0));
}
