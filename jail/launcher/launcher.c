#define _GNU_SOURCE
#include "launcher.h"

#include "clock.h"
#include "fd.h"
#include "filter_cache.h"
#include "filter_notice.h"
#include "cg_sweep.h"
#include "layer.h"
#include "packet.h"
#include "privilege.h"
#include "reap.h"
#include "served_cell.h"
#include "runner_send.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURN_MS_MAX = 60000 };

/* The two filters that the cell's program may have; they live as long as the launcher. */
struct own_filter {
	struct filter     filter, copy;
	struct sock_fprog program, notifying;
};

struct private_run {
	const struct launch_args *args;
	const struct brig_paths  *paths;
	int                       client, signals;
	struct rootless           rootless;
	struct own_filter         filter;
	struct supervisor_setup   setup;
	struct cell_kind          kind;
	struct served_cell       *cell;
};

/*
 * Keys of a terminal signal the client only. A signal that would end this process ends the run instead. The caller's
 * signal settings are replaced.
 */
static int open_end_signalfd(void)
{
	sigset_t set;

	setsid();
	umask(022); /* inherited: under 077 the program could not read main.py, under 0777 nothing be removed */
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

/* --- as a monitor --- */

/* With the slot's number, the client can clean up if the launcher is killed. */
static int take_run_slot_and_cgroups(struct private_run *l, struct cell_resources *p, struct err *e)
{
	const char *runtime = l->paths->runtime;

	for (uint32_t first = 0;; first = p->slot.number + 1) {
		struct launch_message message = { .kind = LAUNCH_SLOT };

		slot_release(&p->slot);
		if (slot_take_free(runtime, &l->rootless.ids, first, &p->slot, e) < 0)
			return -1;
		message.number = p->slot.number;
		if (runner_send_message(l->client, &message, NULL, 0, e) < 0)
			return err_wrap(e, "set-up step take-slot");
		switch (cg_make_for_slot(&p->group, runtime, p->slot.number, e)) {
		case CG_MADE:
			cg_sweep_leftovers(&p->group, &p->slot, runtime);
			return cg_set_limits(&p->group, l->args->limits, e) < 0 ? -1 : cg_check_required_limits(&p->group, l->args->limits, e);
		case CG_TAKEN:
			continue;
		case CG_FAILED:
			return -1;
		}
	}
}

/* --- as a supervisor --- */

/* No network is used again here, so only refused calls need a notice. */
static int open_seccomp_filters(struct private_run *l, struct err *e)
{
	struct own_filter *f = &l->filter;

	if (filter_load_or_compile(l->args->policy, l->paths->runtime, &f->filter, e) < 0 || filter_copy(&f->copy, &f->filter, e) < 0)
		return -1;
	(void)!refusal_notice_add(f->copy.insn, f->copy.len);
	f->program   = (struct sock_fprog){ .len = f->filter.len, .filter = f->filter.insn };
	f->notifying = (struct sock_fprog){ .len = f->copy.len, .filter = f->copy.insn };
	return 0;
}

static void fill_supervisor_setup(struct private_run *l)
{
	const struct launch_args *o = l->args;

	l->setup = (struct supervisor_setup){
		.workspace_exec   = o->profile->workspace_exec,
		.require_all      = o->profile->require == REQUIRE_ALL,
		.wall_ms_max      = UINT64_MAX,
		.tool_wait_ms_max = UINT64_MAX,
		.lifetime_ms_max  = UINT64_MAX - SESSION_GRACE_MS,
		.has_network      = o->listeners != NULL,
		.rootless_kind    = l->rootless.kind,
	};
	snprintf(l->setup.rootfs, sizeof l->setup.rootfs, "%s", o->profile->rootfs);
	memcpy(l->setup.rootless_why, l->rootless.why, sizeof l->setup.rootless_why);
	if (o->listeners)
		l->setup.listeners = *o->listeners;
}

static void fill_cell_kind(struct private_run *l, const struct cell_resources *p)
{
	struct cell_kind *kind = &l->kind;

	kind->setup        = &l->setup;
	kind->filter       = &l->filter.program;
	kind->notifying    = &l->filter.notifying;
	kind->nets.host_fd = -1;
	kind->forker       = (struct forker){ .requests        = -1,
					      .pidfd         = -1,
					      .is_for_one    = true,
					      .is_oom_target = p->group.missing & LAYER_BIT(MEMORY),
					      .filter        = &l->filter.program,
					      .notifying     = &l->filter.notifying };
}

/*
 * The rootfs is opened on the host; then a plain user's launcher enters a user namespace of its own. A failure here
 * becomes kind.unfit: the cell is not built, and sends the client the reason.
 */
static int acquire_cell_resources(struct private_run *l, struct cell_resources *p, struct err *e)
{
	const char *const store[] = { l->paths->store[0], l->paths->store[1] };

	p->limits = *l->args->limits;
	if (l->signals < 0)
		return err_sys(e, "set-up step watch-signals");
	if (store_open_tree_in_first(store, l->args->profile->rootfs, &p->rootfs, e) < 0 || rootless_enter(&l->rootless, e) < 0 ||
	    take_run_slot_and_cgroups(l, p, e) < 0 || open_seccomp_filters(l, e) < 0 || cell_base_open(&l->kind.base, l->rootless.kind, e) < 0)
		return -1;
	l->kind.base.mounts.trust_fd = l->args->trust_fd;
	return 0;
}

static int open_private_cell(struct private_run *l, int control)
{
	const struct launch_args *o         = l->args;
	struct cell_resources     resources = CELL_RESOURCES_NONE;
	struct supervisor_cell    message   = { .for_one_run = true,
						.terminals   = o->terminals,
						.has_code    = o->code_len > 0,
						.shown_len   = (uint32_t)o->shown_len,
						.files       = o->files_fd >= 0 };
	int                       fds[MOUNT_SHOWN_MAX + 1];

	l->kind.base = (struct cell_base){ .init_fd = -1, .mounts = BASE_MOUNTS_NONE };
	if (acquire_cell_resources(l, &resources, &l->kind.unfit) == 0)
		l->kind.unfit.kind = ERR_NONE;
	resources.control = control;
	fill_supervisor_setup(l);
	fill_cell_kind(l, &resources);
	for (size_t i = 0; i < o->shown_len; i++) {
		snprintf(message.shown[i], sizeof message.shown[i], "%s", mount_shown_name(o->shown[i]));
		fds[i] = o->shown_fd[i];
	}
	fds[o->shown_len] = o->files_fd;
	l->cell = served_cell_open(&l->kind, &resources, &message, fds, &ZYGOTE_STATUS_NONE);
	return l->cell ? 0 : -1;
}

/* Sends the spec as a monitor does, with the client's socket. If that fails, the cell reports it over the socket. */
static void send_run_spec_to_cell(struct private_run *l, int control, const struct timespec *asked)
{
	struct runner  *w = &l->cell->watch;
	struct run_spec spec;
	struct err      e;
	int             fds[RUN_ORDER_FDS], r;
	size_t          n = launch_args_collect_fds(fds, l->args, l->client);

	launch_args_to_run_spec(&spec, l->args, (double)asked->tv_sec * 1e3 + (double)asked->tv_nsec / 1e6);
	spec.head.executes = true; /* there is no zygote */
	r = packet_send(control, &spec, sizeof spec, fds, n);
	if (r < 0) {
		errno      = -r;
		w->spec_from = SPEC_FROM_MONITOR; /* it will not come any more */
		w->client  = fd_take(&l->client);
		err_sys(&e, "set-up step give-order");
		runner_fail_run(w, EXIT_setup_failed, &e);
	}
	fd_closep(&l->client);
}

/* The launcher itself reports the failure, because there is no cell to do it. */
static _Noreturn void report_start_failure_and_exit(const struct private_run *l)
{
	struct launch_message message = { .kind = LAUNCH_ENDED, .end = RUN_RESULT_NONE };
	struct err            ignored;

	message.end.reason = EXIT_setup_failed;
	err_sys(&message.end.why, "set-up step start-launcher");
	(void)!runner_send_message(l->client, &message, NULL, 0, &ignored);
	_exit(EXIT_FAILURE);
}

/* --- the loop --- */

static bool is_child_of_cell(const void *arg, pid_t pid)
{
	const struct served_cell *c = arg;

	return cell_has_child(&c->watch.cell, pid) || c->helper == pid;
}

/* What fails before the spec was read is a failed set-up; later a program may have run. */
static void fail_run_on_poll_error(struct runner *w)
{
	struct err e;

	err_sys(&e, w->spec_from ? "the run cannot be watched: poll" : "set-up step watch-cell: poll");
	runner_fail_run(w, w->spec_from ? EXIT_cancelled : EXIT_setup_failed, &e);
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* it may fail again at once */
}

/* False when the cell is gone, and its end was reported. */
static bool launcher_poll_once(struct private_run *l)
{
	struct pollfd           fds[RUNNER_FDS + 1];
	struct signalfd_siginfo info;
	double                  left;

	/* PID 1 cannot end before a fork that was never reported, or a child of CLONE_PARENT, is reaped. */
	if (runner_is_ending(&l->cell->watch) || l->cell->watch.program_state != PROGRAM_NOT_ENDED || l->cell->state == CELL_DIES)
		reap_unknown_children(is_child_of_cell, l->cell);
	served_cell_fill_pollfds(l->cell, fds);
	/* In other states there is no run for a signal to end. */
	fds[RUNNER_FDS] = (struct pollfd){ .fd = l->cell->state == CELL_LIVES ? l->signals : -1, .events = POLLIN };
	left            = l->cell->wake - clock_ms(CLOCK_MONOTONIC);
	if (poll(fds, ARRAY_LEN(fds), left < 0 ? 0 : left > TURN_MS_MAX ? TURN_MS_MAX : (int)left + 1) < 0 && errno != EINTR)
		fail_run_on_poll_error(&l->cell->watch);
	if (fds[RUNNER_FDS].revents && read(l->signals, &info, sizeof info) == sizeof info)
		runner_end_run(&l->cell->watch, EXIT_cancelled);
	return served_cell_handle_events(l->cell, &l->kind, fds) == SERVED_CELL_LIVES;
}

/* The forker, started before, keeps the privilege for the program's way into the cell, and ends after its fork. */
static void start_forker_and_drop_privileges(struct private_run *l)
{
	struct runner *w = &l->cell->watch;
	struct err     e;

	if (!runner_is_ending(w) && (forker_start(&l->kind.forker, &e) < 0 || privilege_keep_only_cap_kill(&e) < 0))
		runner_fail_run(w, EXIT_setup_failed, &e);
}

_Noreturn void launcher_main(const struct launch_args *args, const struct brig_paths *paths, int sock, const struct timespec *asked)
{
	struct private_run l = { .args = args, .paths = paths, .client = sock };
	bool            is_there = true;
	int             pair[2];

	prctl(PR_SET_NAME, "brig-launcher");
	l.signals = open_end_signalfd();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 || open_private_cell(&l, pair[1]) < 0)
		report_start_failure_and_exit(&l);
	while (is_there && l.cell->state == CELL_OPENS)
		is_there = launcher_poll_once(&l);
	start_forker_and_drop_privileges(&l);
	send_run_spec_to_cell(&l, pair[0], asked);
	while (is_there)
		is_there = launcher_poll_once(&l);
	forker_kill(&l.kind.forker);
	reap_all_children();
	_exit(EXIT_SUCCESS);
}
