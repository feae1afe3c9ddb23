#define _GNU_SOURCE
#include "served_cell.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "privilege.h"
#include "stderr_line.h"
#include "verdict.h"
#include "runner_send.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RUN_SPEC_MS_MAX = 2000, DIE_MS = 1000, OPEN_MS_MAX = 10000, REST_MS = 60000 };

/* --- what it is made of --- */

static size_t cg_from_message(struct cg *g, const struct supervisor_cell *message, const int *fds)
{
	*g = (struct cg){ .n = message->leaves, .lent = true, .layers = message->layers, .missing = message->missing };
	memcpy(g->why, message->cg_why, sizeof g->why);
	for (uint32_t i = 0; i < message->leaves; i++)
		g->leaf[i] = (struct cg_leaf){ .base_fd     = -1,
					       .fd          = fds[i],
					       .join_fd     = -1,
					       .v2          = message->leaf[i].v2,
					       .controllers = message->leaf[i].controllers };
	return message->leaves;
}

size_t cell_resources_from_message(struct cell_resources *ret, const struct supervisor_cell *message, const int *fds)
{
	size_t n = 0;

	*ret             = CELL_RESOURCES_NONE;
	ret->control     = fds[n++];
	ret->slot        = (struct slot){ .fd         = fds[n++],
					  .number     = message->number,
					  .init_id    = message->init_id,
					  .program_id = message->program_id };
	ret->rootfs.tree_fd = fds[n++];
	ret->limits         = message->limits;
	memcpy(ret->rootfs.digest, message->digest, sizeof ret->rootfs.digest);
	return n + cg_from_message(&ret->group, message, fds + n);
}

static void adopt_cell_options(struct served_cell *c, const struct supervisor_cell *message, const int *fds)
{
	c->shown_len = message->shown_len;
	for (uint32_t i = 0; i < message->shown_len; i++) {
		mount_shown_to(message->shown[i], c->shown[i]);
		c->shown_to[i] = c->shown[i];
		c->shown_fd[i] = *fds++;
	}
	c->files_fd = message->files ? *fds : -1;
	c->has_code = message->has_code;
	c->is_warm  = message->warm;
	c->terminals = message->terminals;
}

/* Made anew by the monitor: what was opened of the old ones is closed. */
static void adopt_remade_leaves(struct served_cell *c, const struct supervisor_cell *message, const int *fds)
{
	struct cell_resources *p = &c->resources;
	struct err             ignored;

	cg_files_close(&c->files);
	(void)!cg_close(&p->group, &ignored); /* descriptors only: the leaves are the monitor's */
	(void)cg_from_message(&p->group, message, fds);
}

/* The resources are the cell's from here on. */
static void init_runner_of_cell(struct served_cell *c, struct cell_kind *kind, bool for_one_run, const struct zygote_status *zygote)
{
	struct cell_resources *p    = &c->resources;
	struct runner         *w    = &c->watch;
	struct cell           *cell = &w->cell;

	runner_init(w);
	w->control          = fd_take(&p->control);
	w->for_one_run      = for_one_run;
	w->cells_before     = c->cells_before;
	w->asked            = clock_ms(CLOCK_MONOTONIC);
	w->wall_ms_max      = kind->setup->wall_ms_max;
	w->tool_wait_ms_max = kind->setup->tool_wait_ms_max;
	w->lifetime_ms_max  = kind->setup->lifetime_ms_max + SESSION_GRACE_MS;
	w->limits           = p->limits;
	w->spec             = (struct cell_spec){
		.limits         = &w->limits,
		.mounts         = &c->mounts,
		.shown_fd       = c->shown_fd,
		.shown_len      = c->shown_len,
		.workspace_exec = kind->setup->workspace_exec,
		.require_all    = kind->setup->require_all,
		.rootfs         = kind->setup->rootfs,
		.filter         = kind->filter,
		.notifying      = kind->notifying,
		.listeners      = kind->setup->has_network ? &kind->setup->listeners : NULL,
		.has_code       = c->has_code,
	};
	cell->warm.is_wanted = c->is_warm;
	cell->warm.forker    = &kind->forker;
	cell->warm.zygote    = *zygote;
	cell->slot           = p->slot;
	cell->rootfs         = p->rootfs;
	cell->group          = p->group;
	cell->oom            = p->oom;
	cell->user_ns_fd     = p->user_ns_fd;
	cell->rootless       = (struct rootless){ .kind = kind->setup->rootless_kind };
	cell->net            = net_pool_take_net(&kind->nets);
	memcpy(cell->rootless.why, kind->setup->rootless_why, sizeof cell->rootless.why);
	c->is_left = false;
}

static int plan_cell_mounts(struct served_cell *c, struct err *e)
{
	struct mount_options mount_options = mount_options_from_limits(&c->watch.limits, c->watch.spec.workspace_exec);

	mount_options.terminals = c->terminals;
	mount_options.shown = c->shown_to;
	mount_options.shown_len = c->watch.spec.shown_len;
	return mount_plan_build(&c->mounts, &mount_options, e);
}

/*
 * The cell failed while this process was in the cell's network or in the host's mounts, or had the cell's id. A
 * supervisor that cannot go back must end.
 */
static void return_from_failed_cell(const struct served_cell *c)
{
	struct err e;

	if (setresuid(0, 0, 0) == 0 && net_enter_ns(c->watch.cell.net.host_fd, &e) == 0 &&
	    base_mounts_enter_own_ns(&c->watch.cell.base->mounts, &e) == 0 && privilege_make_undumpable(&e) == 0)
		return;
	stderr_print_line("brig: a supervisor cannot leave a cell that could not be built\n");
	_exit(EXIT_FAILURE);
}

static void build_served_cell(struct served_cell *c, struct cell_kind *kind)
{
	scoped_fd  client = -1;
	struct err e      = kind->unfit;

	c->state           = CELL_LIVES;
	c->watch.cell.base = &kind->base;
	if (runner_is_ending(&c->watch)) /* while what it shows was opened */
		return;
	if (e.kind == ERR_NONE && plan_cell_mounts(c, &e) == 0 && cell_open(&c->watch.cell, &c->watch.spec, &e) == 0) {
		client = fd_take(&c->files_fd);
		if (client < 0 || files_fork_helper(&c->watch.files, client, &c->watch.cell, &c->watch.spec, &e) == 0)
			return;
	}
	if (kind->unfit.kind == ERR_NONE && kind->nets.host_fd >= 0) /* else no other cell will be built */
		return_from_failed_cell(c);
	runner_fail_run(&c->watch, EXIT_setup_failed, &e);
}

/* --- what is shown --- */

/* The helper's answer. If there is no error, the mounts come with it. */
struct opened {
	uint64_t   layers, missing;
	struct err err;
};

static _Noreturn void run_shown_files_helper(struct served_cell *c, int sock)
{
	struct cell  *cell = &c->watch.cell;
	struct opened answer;
	int           keep[3 + MOUNT_SHOWN_MAX] = { sock, cell->base->mounts.host_fd, cell->base->mounts.own_fd };
	size_t        n                         = c->watch.spec.shown_len;

	memset(&answer, 0, sizeof answer); /* padding too */
	memcpy(keep + 3, c->shown_fd, n * sizeof *keep);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || fd_close_all_but(keep, n + 3) < 0)
		err_sys(&answer.err, "set-up step open-trees: --ro");
	else if (plan_cell_mounts(c, &answer.err) == 0)
		(void)!cell_bind_shown_files(cell, &c->watch.spec, &answer.err);
	answer.layers  = cell->layers;
	answer.missing = cell->missing;
	(void)!packet_send(sock, &answer, sizeof answer, cell->child.build.shown_fd, answer.err.kind == ERR_NONE ? n : 0);
	_exit(EXIT_SUCCESS);
}

static int fork_shown_files_helper(struct served_cell *c, struct cell_kind *kind, struct err *e)
{
	int pair[2];

	c->watch.cell.base = &kind->base;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "set-up step open-trees: --ro");
	c->state   = CELL_OPENS;
	c->opening = pair[0];
	c->wake    = clock_ms(CLOCK_MONOTONIC) + OPEN_MS_MAX;
	c->helper  = fork();
	if (c->helper == 0)
		run_shown_files_helper(c, pair[1]);
	close(pair[1]);
	return c->helper < 0 ? err_sys(e, "set-up step open-trees: --ro") : 0;
}

static int receive_shown_mounts(struct served_cell *c, struct err *e)
{
	struct cell  *cell = &c->watch.cell;
	struct opened answer;
	int           fds[MOUNT_SHOWN_MAX];
	size_t        n;
	ssize_t       got = packet_receive(c->opening, &answer, sizeof answer, fds, ARRAY_LEN(fds), &n);

	if (got == sizeof answer && answer.err.kind == ERR_NONE && n == c->watch.spec.shown_len) {
		memcpy(cell->child.build.shown_fd, fds, n * sizeof *fds);
		cell->layers |= answer.layers;
		cell->missing |= answer.missing;
		return 0;
	}
	packet_close_fds(fds, got < 0 ? 0 : n);
	if (got == sizeof answer && answer.err.kind != ERR_NONE)
		*e = answer.err;
	else
		err_set(e, ERR_SETUP, "set-up step open-trees: --ro: the process that opens it was killed");
	return -1;
}

/* The helper has answered, or took too long. It is reaped with other children. */
static void finish_opening_shown_files(struct served_cell *c, struct cell_kind *kind, bool is_answered)
{
	struct err e;

	if (is_answered && receive_shown_mounts(c, &e) == 0) {
		fd_closep(&c->opening);
		c->helper = 0;
		build_served_cell(c, kind);
		return;
	}
	if (!is_answered)
		err_set(&e, ERR_SETUP, "set-up step open-trees: --ro: its file system did not answer within %d s",
			OPEN_MS_MAX / 1000);
	kill(c->helper, SIGKILL); /* its pid is still valid: children that a cell knows are not reaped elsewhere */
	fd_closep(&c->opening);
	c->helper = 0;
	c->state = CELL_LIVES;
	runner_fail_run(&c->watch, EXIT_setup_failed, &e);
}

static void close_cell_resources(struct cell_resources *p)
{
	struct err ignored;

	fd_closep(&p->control);
	fd_closep(&p->user_ns_fd);
	cg_oom_close(&p->oom);
	store_close(&p->rootfs);
	(void)!cg_close(&p->group, &ignored); /* the monitor removes them; this closes descriptors only */
	slot_release(&p->slot);
}

static void build_cell_for_message(struct served_cell *c, struct cell_kind *kind, const struct supervisor_cell *message, const int *fds,
			      const struct zygote_status *zygote)
{
	struct err e;

	adopt_cell_options(c, message, fds);
	c->cells_before = 0;
	c->may_follow   = kind->setup->warm && message->warm && !message->for_one_run && cg_is_renewable(&c->resources.group);
	if (c->may_follow)
		cg_keep_counter_files_open(&c->resources.group, &c->files);
	init_runner_of_cell(c, kind, message->for_one_run, zygote);
	c->opening = -1;
	if (!message->shown_len || kind->unfit.kind != ERR_NONE)
		build_served_cell(c, kind);
	else if (fork_shown_files_helper(c, kind, &e) < 0) {
		c->state = CELL_LIVES;
		runner_fail_run(&c->watch, EXIT_setup_failed, &e);
	}
	for (uint32_t i = 0; i < message->shown_len; i++)
		fd_closep(&c->shown_fd[i]);
}

struct served_cell *served_cell_open(struct cell_kind *kind, const struct cell_resources *resources,
				     const struct supervisor_cell *message, const int *fds, const struct zygote_status *zygote)
{
	struct served_cell *c = calloc(1, sizeof *c);

	if (!c) {
		struct cell_resources left = *resources;

		close_cell_resources(&left);
		packet_close_fds((int *)fds, message->shown_len + message->files);
		return NULL;
	}
	c->resources = *resources;
	build_cell_for_message(c, kind, message, fds, zygote);
	return c;
}

/* --- its place, for the next cell --- */

/*
 * Only after a run that was not reported to the monitor: after a longer one the monitor has had another cell built. The
 * program must have ended by itself and left no process, so that the groups are empty once PID 1 is reaped.
 */
static bool may_follow_at_once(const struct served_cell *c)
{
	const struct runner *w = &c->watch;

	return c->may_follow && c->is_left && !w->session_ms && w->spec_from == SPEC_FROM_LEASE && w->taken_due_ms > 0;
}

/*
 * Whether the place is as it was before the cell, as soon as PID 1 is reaped. In a profile that never starts warm, a
 * run gets nothing that another run has used.
 */
static bool is_place_reusable(const struct served_cell *c, const struct cell_kind *kind)
{
	const struct runner *w = &c->watch;

	return kind->setup->warm && w->control >= 0 && w->clock.started > 0 && w->cell.pidfd >= 0 && w->cell.group.n && w->cell.group.lent;
}

static void restore_cell_resources(struct served_cell *c)
{
	struct cell_resources *p    = &c->resources;
	struct cell           *cell = &c->watch.cell;

	cg_kill(&cell->group);
	p->control    = fd_take(&c->watch.control);
	p->slot       = cell->slot;
	p->rootfs     = cell->rootfs;
	p->group      = cell->group;
	p->user_ns_fd = fd_take(&cell->user_ns_fd);
	p->oom        = cell->oom;
	cell->oom     = CG_OOM_NONE;
	cell->slot.fd = -1;
	cell->rootfs  = STORE_TREE_NONE;
	cell->group.n = 0;
	c->is_kept    = true;
}

/* The cell is gone. What is left of its runner waits for nothing. False: the monitor gets no message; c is freed. */
static bool report_place_as_resting(struct served_cell *c)
{
	c->watch.control = c->resources.control; /* if the run was not reported to the monitor, it is now */
	runner_send_lease_taken(&c->watch);
	runner_init(&c->watch);
	cg_oom_close(&c->resources.oom); /* while a place rests, events come that are not the next cell's */
	c->resources.oom = CG_OOM_NONE;
	c->state         = CELL_RESTS;
	if (runner_send_rests(c->resources.control))
		return true;
	served_cell_free(c);
	return false;
}

bool served_cell_build_next(struct served_cell *c, struct cell_kind *kind, const struct zygote_status *zygote)
{
	if (!cg_reset_counters(&c->resources.group))
		return report_place_as_resting(c);
	c->is_kept = false;
	c->cells_before++;
	init_runner_of_cell(c, kind, false, zygote);
	build_served_cell(c, kind);
	return true;
}

void served_cell_reuse(struct served_cell *c, struct cell_kind *kind, const struct supervisor_cell *message, const int *fds,
		       const struct zygote_status *zygote)
{
	struct cg *g = &c->resources.group;

	if (message->leaves)
		adopt_remade_leaves(c, message, fds);
	g->layers           = message->layers;
	g->missing          = message->missing;
	c->resources.limits = message->limits;
	memcpy(g->why, message->cg_why, sizeof g->why);
	c->is_kept = false;
	build_cell_for_message(c, kind, message, fds + message->leaves, zygote);
}

void served_cell_free(struct served_cell *c)
{
	if (c->is_kept) {
		c->watch.control = c->resources.control; /* else the cell would seem to end unused */
		runner_send_lease_taken(&c->watch);
		close_cell_resources(&c->resources);
	}
	cg_files_close(&c->files);
	free(c);
}

/* --- its turns --- */

static void poll_only_fd(struct pollfd fds[RUNNER_FDS], int fd)
{
	for (size_t i = 0; i < RUNNER_FDS; i++)
		fds[i] = (struct pollfd){ .fd = -1 };
	fds[RUNNER_FDS - 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* It could not be built: there is no PID 1 to wait for. */
static bool is_cell_unbuilt(const struct served_cell *c)
{
	return runner_is_ending(&c->watch) && c->watch.cell.pidfd < 0;
}

void served_cell_fill_pollfds(struct served_cell *c, struct pollfd fds[RUNNER_FDS])
{
	double now = clock_ms(CLOCK_MONOTONIC);

	switch (c->state) {
	case CELL_OPENS:
		poll_only_fd(fds, c->opening);
		fds[0] = (struct pollfd){ .fd = c->watch.control }; /* only to see its end */
		return;
	case CELL_LIVES:
		c->wake = is_cell_unbuilt(c) ? now : now + runner_ms_until_wakeup(&c->watch);
		runner_fill_pollfds(&c->watch, fds);
		return;
	case CELL_AWAITS:
		poll_only_fd(fds, c->watch.control);
		return;
	case CELL_DIES:
		c->wake = now + DIE_MS;
		poll_only_fd(fds, c->watch.cell.pidfd);
		return;
	case CELL_RESTS:
		c->wake = now + REST_MS;
		poll_only_fd(fds, c->resources.control);
		return;
	case CELL_SENDS:
		poll_only_fd(fds, c->watch.files.sock);
		fds[0] = (struct pollfd){ .fd = c->watch.client }; /* only to see its end */
		return;
	}
}

/* Closes all that belongs to the cell, except a place that is kept. */
static enum served_turn close_served_cell(struct served_cell *c, struct cell_kind *kind)
{
	struct runner *w        = &c->watch;
	bool           is_clean = cell_reap_and_release(&w->cell, &w->end.left) == 0;

	if (!c->is_left)
		runner_send_run_ended(w);
	if (is_clean && cell_network_is_unused(&w->cell))
		net_pool_return_net(&kind->nets, &w->cell.net.net);
	net_close(&w->cell.net.net);
	fd_closep(&c->opening);
	packet_close_socket(&c->files_fd);
	runner_close_fds(w);
	if (c->is_kept && c->follows_at_once)
		return SERVED_CELL_MAY_FOLLOW;
	if (c->is_kept)
		return report_place_as_resting(c) ? SERVED_CELL_LIVES : SERVED_CELL_IS_GONE;
	served_cell_free(c);
	return SERVED_CELL_IS_GONE;
}

/* PID 1 is gone, and with it every process of the cell. */
static enum served_turn handle_cell_death(struct served_cell *c, struct cell_kind *kind)
{
	struct runner *w = &c->watch;

	if (!files_start_sending(&w->files, w->clock.started > 0 && w->client >= 0))
		return close_served_cell(c, kind);
	cell_reap_init(&w->cell); /* the client may read slowly: until then reap_unknown_children() would stop at this child */
	c->state = CELL_SENDS;
	c->wake  = clock_ms(CLOCK_MONOTONIC) + FILES_SEND_MS_MAX;
	return SERVED_CELL_LIVES;
}

/*
 * If only PID 1 is left, the record is sent before PID 1 is reaped, which takes a moment. If this process removes the
 * groups itself, the record is sent after that, because it has what could not be removed.
 */
static enum served_turn end_served_cell(struct served_cell *c, struct cell_kind *kind)
{
	struct runner *w = &c->watch;

	runner_receive_late_spec(w); /* the cell may have ended by itself */
	verdict_fill_result(w);
	c->is_left = w->program_state == PROGRAM_LEFT_NONE && w->files.state == FILES_NONE && w->cell.group.lent;
	if (c->is_left) {
		runner_send_run_ended(w);
		fd_closep(&w->client);
	}
	c->follows_at_once = may_follow_at_once(c);
	if (!c->follows_at_once)
		runner_send_lease_taken(w);
	if (is_place_reusable(c, kind))
		restore_cell_resources(c);
	cell_kill_and_close(&w->cell);
	c->state = CELL_DIES;
	return w->cell.pidfd >= 0 && !packet_is_readable(w->cell.pidfd) ? SERVED_CELL_LIVES : handle_cell_death(c, kind);
}

enum served_turn served_cell_handle_events(struct served_cell *c, struct cell_kind *kind, const struct pollfd fds[RUNNER_FDS])
{
	bool       has_come = fds[RUNNER_FDS - 1].revents; /* what poll_only_fd() waits for */
	struct err ignored;

	switch (c->state) {
	case CELL_OPENS:
		if (has_come || fds[0].revents || clock_ms(CLOCK_MONOTONIC) >= c->wake)
			finish_opening_shown_files(c, kind, has_come);
		return SERVED_CELL_LIVES;
	case CELL_LIVES:
		if (runner_handle_events(&c->watch, fds) && !is_cell_unbuilt(c))
			return SERVED_CELL_LIVES;
		if (!runner_awaits_spec(&c->watch) || packet_is_readable(c->watch.control))
			return end_served_cell(c, kind);
		c->state = CELL_AWAITS;
		c->wake  = clock_ms(CLOCK_MONOTONIC) + RUN_SPEC_MS_MAX;
		return SERVED_CELL_LIVES;
	case CELL_AWAITS:
		return has_come || clock_ms(CLOCK_MONOTONIC) >= c->wake ? end_served_cell(c, kind) : SERVED_CELL_LIVES;
	case CELL_DIES:
		return has_come ? handle_cell_death(c, kind) : SERVED_CELL_LIVES;
	case CELL_RESTS:
		return has_come ? SERVED_CELL_IS_WANTED : SERVED_CELL_LIVES;
	case CELL_SENDS:
		if (has_come && files_receive_answer(&c->watch.files, &ignored) == FILES_GO_ON)
			has_come = false;
		if (has_come || fds[0].revents || clock_ms(CLOCK_MONOTONIC) >= c->wake)
			return close_served_cell(c, kind);
		return SERVED_CELL_LIVES;
	}
	return SERVED_CELL_LIVES;
}
