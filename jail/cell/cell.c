#define _GNU_SOURCE
#include "cell.h"

#include "child_wait.h"
#include "clone.h"
#include "fd.h"
#include "file.h"
#include "init_image.h"
#include "layer.h"
#include "net.h"
#include "privilege.h"
#include "guest_runner.h"
#include "ro_bind.h"
#include "user_ns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* The layers that every cell has after cell_open(): if a step that makes one fails, nothing runs. */
#define LAYERS_OF_STEPS                                                                                                  \
	(LAYER_BIT(USER_NS) | LAYER_BIT(MOUNT_NS) | LAYER_BIT(RO_ROOTFS) | LAYER_BIT(PROC_SUBSET) | \
	 LAYER_BIT(PID_NS) | LAYER_BIT(NET_NS) | LAYER_BIT(IPC_NS) | LAYER_BIT(UTS_NS) | LAYER_BIT(CGROUP_NS) |          \
	 LAYER_BIT(WALL_TIME) | LAYER_BIT(KEYRING) | LAYER_BIT(NO_CAPS) | LAYER_BIT(NO_NEW_PRIVS) | LAYER_BIT(SECCOMP) | \
	 LAYER_BIT(RLIMITS) | LAYER_BIT(CLOSED_FDS))

void cell_init(struct cell *c)
{
	*c = (struct cell){ .slot.fd = -1, .rootfs = STORE_TREE_NONE, .pidfd = -1, .report_fd = -1, .oom = CG_OOM_NONE };
	c->warm          = WARM_NONE;
	c->net           = NET_PLACE_NONE;
	c->notice        = NOTICE_NONE;
	c->sockets       = NET_SOCKETS_NONE;
	c->child.build.root_fd = c->child.report_fd = -1;
	c->user_ns_fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(c->child.build.shown_fd); i++)
		c->child.build.shown_fd[i] = -1;
}

/* --- what must be there --- */

static void note_layer(struct cell *c, bool there, uint64_t layer)
{
	*(there ? &c->layers : &c->missing) |= layer;
}

/* Containers have a read-only /proc/sys. */
static bool can_set_user_ns_quotas(void)
{
	struct statvfs fs;

	return statvfs("/proc/sys/user/max_user_namespaces", &fs) == 0 && !(fs.f_flag & ST_RDONLY);
}

int cell_base_open(struct cell_base *ret, enum rootless_kind kind, struct err *e)
{
	*ret = (struct cell_base){ .quotas = can_set_user_ns_quotas(), .landlock_abi = (unsigned)landlock_abi(), .init_fd = init_image_open_memfd(e), .mounts = BASE_MOUNTS_NONE };
	if (ret->init_fd < 0 || privilege_forget_caller(kind == ROOTLESS_NONE, &ret->no_groups, e) < 0)
		return -1;
	return base_mounts_open(&ret->mounts, kind == ROOTLESS_NONE, e);
}

static bool is_layer_required(const struct cell *c, unsigned layer, bool all)
{
	switch (layer_need(layer)) {
	case NEED_ALWAYS:
		return true;
	case NEED_ROOT:
		return all || c->rootless.kind == ROOTLESS_NONE || c->rootless.kind == ROOTLESS_KEPT;
	case NEED_WHERE_PRESENT:
		return all;
	}
	return true;
}

/* Fail closed: a layer that this way of starting promises is there, or nothing runs. */
static int check_required_layers(const struct cell *c, bool all, struct err *e)
{
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		const char *why = i == LAYER_OWN_IDS || i == LAYER_NO_GROUPS ? c->rootless.why : "";

		if (!(c->missing & (1ull << i)) || !is_layer_required(c, i, all))
			continue;
		if (c->group.missing & (1ull << i))
			why = c->group.why;
		return err_set(e, ERR_MISSING, "%s cannot be applied here%s%s; brig doctor says what to change", layer_name(i),
			       *why ? ": " : "", why);
	}
	return 0;
}

/*
 * Where no control group limits memory, RLIMIT_DATA does, with this much on top: numpy, pandas, scipy and matplotlib
 * map so much private memory without ever touching it.
 */
#define DATA_ROOM (512 * MIB)

static int open_cell_cgroups(struct cell *c, struct err *e)
{
	c->layers |= c->group.layers;
	c->missing |= c->group.missing;
	if (cg_open_join_files(&c->group, e) < 0)
		return -1;
	c->child.join_len = cg_join_fds(&c->group, c->child.join_fd);
	return c->oom.fd >= 0 ? 0 : cg_watch_oom(&c->group, &c->oom, e);
}

/* --- the file trees, opened with the launcher's rights: a store below a 0700 directory works --- */

static const struct mount_step *find_shown_step(const struct mount_plan *plan, size_t shown)
{
	const struct mount_step *m = plan->step;

	while (m->kind != MOUNT_SHOWN || m->shown != (int)shown)
		m++; /* mount_plan_build() makes one for each */
	return m;
}

/* A layer is mounted over a place that the rootfs has, and rootfs trees of an older brig have none. */
static int check_layer_place(const struct cell *c, const struct cell_spec *spec, struct err *e)
{
	bool has_layer = false;

	for (size_t i = 0; i < spec->mounts->n; i++)
		has_layer |= strcmp(spec->mounts->step[i].to, MOUNT_LAYER) == 0;
	if (!has_layer || faccessat(c->rootfs.tree_fd, MOUNT_LAYER, F_OK, 0) == 0)
		return 0;
	return err_set(e, ERR_MISSING, "the rootfs has no place for packages (/" MOUNT_LAYER "), it is of an older brig; build it again: brig rootfs build %s", spec->rootfs);
}

static int bind_shown_files(struct cell *c, const struct cell_spec *spec, struct err *e)
{
	bool all_inert = true;

	for (size_t i = 0; i < spec->shown_len; i++) {
		const struct mount_step *m     = find_shown_step(spec->mounts, i);
		bool                     inert = false;
		scoped_fd                dir   = base_mounts_reopen_path(&c->base->mounts, spec->shown_fd[i], strcmp(m->to, MOUNT_LAYER) == 0 ? "packages" : "--ro", e);

		c->child.build.shown_fd[i] =
			dir < 0 ? -1 : ro_bind_open_mount(dir, mount_step_attrs(m), c->slot.init_id, &inert, e);
		if (c->child.build.shown_fd[i] < 0)
			return -1;
		all_inert &= inert;
	}
	note_layer(c, all_inert, LAYER_BIT(INERT_RO));
	return 0;
}

int cell_bind_shown_files(struct cell *c, const struct cell_spec *spec, struct err *e)
{
	struct base_mounts *mounts = &c->base->mounts;

	if (!spec->shown_len)
		return 0;
	return base_mounts_enter_host_ns(mounts, e) < 0 || bind_shown_files(c, spec, e) < 0 ? -1 : base_mounts_enter_own_ns(mounts, e);
}

/* --- from one process to two --- */

/* While this process has them open, too, end of file does not arrive when PID 1 ends. */
static void close_child_fds(struct cell *c)
{
	fd_closep(&c->child.report_fd);
	fd_closep(&c->child.build.root_fd);
	for (size_t i = 0; i < ARRAY_LEN(c->child.build.shown_fd); i++)
		fd_closep(&c->child.build.shown_fd[i]);
}

static void fill_child_build(struct cell *c, const struct cell_spec *spec)
{
	struct child_build *build = &c->child.build;

	c->child.init_id     = user_ns_has_one_id(&c->slot) ? USER_NS_PROGRAM_ID : 0;
	build->mounts        = spec->mounts;
	build->owner_id      = c->slot.init_id;
	build->pipes_id      = c->slot.program_id;
	build->user_ns_fd    = c->user_ns_fd;
	build->is_oom_target = c->missing & LAYER_BIT(MEMORY);
	build->slot_fd       = c->slot.fd;
	build->init_fd       = c->base->init_fd;
}

/*
 * PID 1 shares this process's memory until it becomes brig-init: it writes to a copy of what both know. No other process
 * may be in the cell's groups meanwhile: the kernel would end this one with PID 1 for memory.oom.group.
 */
static void build_cell_on_own_stack(void *arg)
{
	struct child_ctx own = *(const struct child_ctx *)arg;

	child_build_cell_and_exec_init(&own);
}

static int clone_init_into_cgroup(struct cell *c, struct err *e)
{
	struct clone_args args = {
		.flags       = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_PIDFD,
		.pidfd       = (uint64_t)(uintptr_t)&c->pidfd,
		.exit_signal = SIGCHLD,
	};

	/* What --ro shows may be of a server that no longer answers: such a mount must not hold this process. */
	if (c->child.build.shown_fd[0] < 0) {
		c->pid = clone_sharing_memory(&args, cg_clone_fd(&c->group), build_cell_on_own_stack, &c->child);
	} else {
		c->pid = clone_into_group(&args, cg_clone_fd(&c->group));
		if (c->pid == 0)
			child_build_cell_and_exec_init(&c->child);
	}
	if (c->pid > 0)
		return 0;
	c->pidfd = -1;
	return err_sys(e, "set-up step clone");
}

/*
 * Becomes root again after a failure, too: what has to be removed then belongs to root. Each change of ids, of PID 1's
 * in the shared memory as well, leaves the memory as dumpable as fs.suid_dumpable has it.
 */
static int clone_init_as_owner(struct cell *c, struct err *e)
{
	int        r = privilege_set_userns_uid(c->slot.init_id, e);
	struct err second;

	if (r == 0)
		r = clone_init_into_cgroup(c, e);
	if (privilege_restore_root_uid(r == 0 ? e : &second) < 0 || privilege_make_undumpable(r == 0 ? e : &second) < 0)
		r = -1;
	return r;
}

/*
 * PID 1 is cloned into the network that its parent is in, so this process has to enter the cell's network: for that
 * it needs rights over it, which PID 1 must not have. If it keeps networks, it goes back afterwards, so that no
 * socket that it makes later is taken for the program's.
 */
static int enter_cell_network(struct cell *c, const struct cell_spec *spec, struct err *e)
{
	if (c->net.net.ns_fd >= 0)
		return net_enter_ns(c->net.net.ns_fd, e); /* it is used again, and has the route already */
	if ((c->net.host_fd < 0 ? net_unshare_with_loopback(e) : net_make_reusable(&c->net.net, e)) < 0)
		return -1;
	if (!spec->listeners || net_add_local_route(e) == 0)
		return 0;
	net_close(&c->net.net); /* no other cell may use it */
	return -1;
}

static int build_cell(struct cell *c, const struct cell_spec *spec, struct err *e)
{
	int report[2];

	note_layer(c, c->base->landlock_abi, LAYER_BIT(LANDLOCK));
	note_layer(c, c->base->quotas, LAYER_BIT(NO_NESTED_NS));
	note_layer(c, c->base->no_groups, LAYER_BIT(NO_GROUPS));
	note_layer(c, c->rootless.kind != ROOTLESS_SINGLE, LAYER_BIT(OWN_IDS));
	if (open_cell_cgroups(c, e) < 0)
		return -1;
	c->child.build.root_fd = base_mounts_clone_rootfs(&c->base->mounts, &c->rootfs, spec->rootfs, e);
	if (c->child.build.root_fd < 0 || (c->child.build.shown_fd[0] < 0 && cell_bind_shown_files(c, spec, e) < 0))
		return -1;
	if (check_layer_place(c, spec, e) < 0 || check_required_layers(c, spec->require_all, e) < 0)
		return -1;
	if (c->user_ns_fd < 0 && (c->user_ns_fd = user_ns_make(&c->slot, c->base->quotas, e)) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
		return err_sys(e, "set-up step channels");
	c->report_fd       = report[0];
	c->child.report_fd = report[1];
	if (warm_open_channels(&c->warm, e) < 0)
		return -1;
	fill_child_build(c, spec);
	if (enter_cell_network(c, spec, e) < 0 || clone_init_as_owner(c, e) < 0)
		return -1;
	/* PID 1 was cloned before the sockets are made, so it never has copies of them. */
	if (spec->listeners && net_sockets_open(spec->listeners, &c->sockets, e) < 0)
		return -1;
	if (c->net.host_fd >= 0 && net_enter_ns(c->net.host_fd, e) < 0)
		return -1;
	c->layers |= LAYERS_OF_STEPS;
	return 0;
}

/* The child's ends are closed after a failure, too: PID 1 may exist by then, and its end of file must arrive. */
int cell_open(struct cell *c, const struct cell_spec *spec, struct err *e)
{
	int r = build_cell(c, spec, e);

	close_child_fds(c);
	return r;
}

/* Where a control group limits and counts, the rlimit is higher by this much: the group's limit is reached first. */
enum { BEHIND_PIDS = 16, BEHIND_CPU_S = 2, SESSION_CPU_S = INT32_MAX };

int cell_request_fork(struct cell *c, const struct cell_spec *spec, struct err *e)
{
	const struct limits       *l       = spec->limits;
	const uint64_t             cpu_s   = (l->cpu_ms + 999) / 1000 + (c->missing & LAYER_BIT(CPU_TIME) ? 0 : BEHIND_CPU_S);
	const struct child_rlimits rlimits = {
		.files     = l->files,
		.processes = l->pids + (c->missing & LAYER_BIT(PIDS) ? user_ns_has_one_id(&c->slot) : BEHIND_PIDS),
		.data      = c->missing & LAYER_BIT(MEMORY) && !(l->waived & LAYER_BIT(MEMORY)) ? l->memory_bytes + DATA_ROOM : RLIM_INFINITY,
		.cpu_s     = cpu_s,
		.cpu_s_max = cpu_s + (c->missing & LAYER_BIT(CPU_TIME) ? 1 : (uint64_t)SESSION_CPU_S),
	};

	return warm_request_fork(&c->warm, c, spec->workspace_exec, &rlimits, e);
}

int cell_remove_code(struct cell *c, struct err *e)
{
	if (unlinkat(c->warm.prepared[PREPARED_MOUNTS + CELL_MOUNTS - 1], "main.py", 0) < 0)
		return err_sys(e, "set-up step remove-code");
	c->warm.code = CODE_REMOVED;
	return 0;
}

int cell_deliver_spec(struct cell *c, const char *rootfs, const struct run_spec_head *head, const struct run_spec_fds *fds, struct err *e)
{
	if (!head->result_pipe || faccessat(c->rootfs.tree_fd, GUEST_RUNNER_PATH, F_OK, 0) == 0)
		return warm_deliver_spec(&c->warm, head, fds, e);
	if (errno != ENOENT && errno != ENOTDIR)
		return err_sys(e, "set-up step read-order: /%s", GUEST_RUNNER_PATH);
	/* The interpreter's own message about that would not help a user. */
	return err_set(e, ERR_MISSING,
		       "the rootfs has no guest runner, it is of an older brig; build it again: brig rootfs build %s", rootfs);
}

void cell_kill(const struct cell *c)
{
	cg_kill(&c->group);
	if (c->pidfd >= 0)
		pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0);
}

void cell_kill_and_close(struct cell *c)
{
	cell_kill(c);
	close_child_fds(c);
	warm_close(&c->warm);
	seccomp_notify_close(&c->notice);
	net_sockets_close(&c->sockets);
	fd_closep(&c->report_fd);
	cg_oom_close(&c->oom);
	fd_closep(&c->user_ns_fd);
	store_close(&c->rootfs);
}

void cell_reap_init(struct cell *c)
{
	if (c->pidfd >= 0)
		(void)child_wait(c->pid);
	fd_closep(&c->pidfd);
	c->pid = 0;
}

int cell_reap_and_release(struct cell *c, struct err *e)
{
	int r;

	cell_reap_init(c);
	r = cg_close(&c->group, e);
	slot_release(&c->slot);
	return r;
}

bool cell_has_child(const struct cell *c, pid_t pid)
{
	return c->pid == pid || c->warm.program == pid || c->oom.helper == pid;
}

/* When in doubt the network is not used again: the next program could find traces of this one in it. */
bool cell_network_is_unused(const struct cell *c)
{
	const struct net_place *p = &c->net;
	bool is_untouched         = p->is_needless || (c->is_noticed && !c->notice.socket_was_allowed);

	return p->net.ns_fd >= 0 && is_untouched;
}
