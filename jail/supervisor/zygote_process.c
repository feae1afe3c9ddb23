#define _GNU_SOURCE
#include "zygote_process.h"

#include "child.h"
#include "clock.h"
#include "fd.h"
#include "net.h"
#include "privilege.h"
#include "profile_warm.h"
#include "program_env.h"
#include "sealed.h"
#include "stderr_line.h"
#include "sys.h"
#include "zygote_image.h"
#include "fork_protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { RETRY_MS = 10000, MEASURE_MS = 10000 };
/* So many ready zygotes may end at once, then one in ENDS_EACH_MS: an imported module may end its process later. */
enum { ENDS_MAX = 64, ENDS_EACH_MS = 2500 };
/* Of the zygote's own tmpfs mounts, which no run sees: no setting gives their size. */
enum { TMPFS_BYTES = 64 * 1024 * 1024, TMPFS_INODES = 4096 };

int zygote_process_init(struct zygote_process *z, const struct supervisor_setup *setup, struct base_mounts *mounts,
			int filter_fd, struct err *e)
{
	void *activity;

	*z = (struct zygote_process){ .setup = setup, .mounts = mounts, .filter_fd = filter_fd, .requests = { -1, -1 }, .now = ONE_ZYGOTE_NONE,
				   .next = ONE_ZYGOTE_NONE, .tree_fd = -1, .report = zygote_report_none };
	z->activity_fd = memfd_create_mapped("run-activity", sizeof *z->activity, &activity, e);
	if (z->activity_fd < 0)
		return -1;
	z->activity = activity;
	return 0;
}

void zygote_process_set_activity(struct zygote_process *z, double newest_ms, bool has_guest_runner)
{
	atomic_store_explicit(&z->activity->newest_ms, (int64_t)newest_ms, memory_order_relaxed);
	atomic_store_explicit(&z->activity->has_guest_runner, has_guest_runner, memory_order_relaxed);
}

void zygote_process_set_no_activity(struct zygote_process *z)
{
	atomic_store_explicit(&z->activity->newest_ms, 0, memory_order_relaxed);
}

/* --- the zygote's side of the fork --- */

/* A cell's mounts without /proc: to mount one, the zygote would need a pid namespace of its own. */
static int plan_zygote_mounts(struct mount_plan *plan, struct err *e)
{
	const struct mount_options mount_options = { .tmp_bytes = TMPFS_BYTES,
					     .workspace_bytes = TMPFS_BYTES,
					     .inodes          = TMPFS_INODES,
					     .workspace_exec  = true }; /* the extension is loaded from there */
	size_t                    n = 0;

	if (mount_plan_build(plan, &mount_options, e) < 0)
		return -1;
	for (size_t i = 0; i < plan->n; i++)
		if (plan->step[i].kind != MOUNT_PROC)
			plan->step[n++] = plan->step[i];
	plan->n = n;
	return 0;
}

static int build_zygote_mounts(const struct zygote_process *z, int root, struct err *e)
{
	const struct limits  limits = { .cpus = z->setup->cpus };
	struct program_env   env; /* for programs that ask for no other */
	struct mount_plan    plan;
	struct child_ctx     c     = { .build = { .mounts = &plan, .root_fd = root } };
	struct child_zygote *image = &c.zygote;
	unsigned             step;
	int                  r;

	if (plan_zygote_mounts(&plan, e) < 0 || program_env_init(&env, &limits, e) < 0)
		return -1;
	image->code_fd      = zygote_image_open_program(z->setup->preload, &env, &image->code_len, e);
	image->extension_fd = image->code_fd < 0 ? -1 : zygote_image_open_extension(&image->extension_len, e);
	if (image->extension_fd < 0 || net_unshare_with_loopback(e) < 0)
		return -1;
	r     = child_run_zygote_steps(&c, &step);
	errno = -r;
	return r < 0 ? err_sys(e, "set-up step %s", child_step_name(CHILD_ZYGOTE, step)) : 0;
}

/*
 * Every descriptor first gets a high number, so that no dup2() closes one that is still to be moved. The zygote does
 * not use its streams: stdout and stderr are pipes so that the interpreter sets them up as it does in a run.
 */
static int place_zygote_fds(const struct zygote_process *z, int ready)
{
	enum { CLEAR_OF_LOW = 16 };
	int null, out[2], err[2];
	int high[] = { [ZYGOTE_FD_REQUESTS] = z->requests[1],
		       [ZYGOTE_FD_READY]    = ready,
		       [ZYGOTE_FD_LOG]      = 2,
		       [ZYGOTE_FD_FILTER]   = z->filter_fd,
		       [ZYGOTE_FD_ACTIVITY] = z->activity_fd };

	for (int i = ZYGOTE_FD_REQUESTS; i < ZYGOTE_FDS_END; i++)
		if ((high[i] = fcntl(high[i], F_DUPFD_CLOEXEC, CLEAR_OF_LOW)) < 0)
			return -1;
	for (int i = ZYGOTE_FD_REQUESTS; i < ZYGOTE_FDS_END; i++)
		if (dup2(high[i], i) < 0)
			return -1;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		return -1;
	if (dup2(null, 0) < 0 || dup2(out[1], 1) < 0 || dup2(err[1], 2) < 0)
		return -1;
	return close_range(ZYGOTE_FDS_END, ~0u, CLOSE_RANGE_CLOEXEC);
}

static int exec_zygote_python(const struct zygote_process *z, int root, int ready, struct err *e)
{
	char *const         argv[] = { (char *)"python3", (char *)"-I", (char *)"main.py", NULL };
	/* One CPU: numeric libraries start a thread for each when imported; a zygote may have only one thread. */
	const struct limits limits = { .cpus = 1000 };
	/* Otherwise each fork would resolve anew the functions that the zygote never called. */
	static char         bind_now[] = "LD_BIND_NOW=1";
	struct program_env  env;
	size_t              n = 0;

	if (program_env_init(&env, &limits, e) < 0 || build_zygote_mounts(z, root, e) < 0)
		return -1;
	while (env.entry[n])
		n++;
	env.entry[n] = bind_now; /* it fits: no entries of a caller were added */
	umask(022);
	if (chdir("/workspace") < 0 || place_zygote_fds(z, ready) < 0)
		return err_sys(e, "its descriptors");
	execve("/usr/bin/python3", argv, env.entry);
	return err_sys(e, "/usr/bin/python3");
}

/* The zygote ends with the supervisor, because no other process would use or replace it. */
static _Noreturn void enter_cell_and_exec_zygote(const struct zygote_process *z, int root, int ready)
{
	int        keep[] = { root, z->filter_fd, z->activity_fd, z->requests[1], ready }, log;
	sigset_t   none;
	struct err e;

	(void)!fd_close_all_but(keep, ARRAY_LEN(keep)); /* closes the descriptors of cells now, and not only at the exec */
	log = fcntl(2, F_DUPFD_CLOEXEC, 16);
	prctl(PR_SET_NAME, "brig-zygote");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (z->is_oom_target)
		privilege_set_max_oom_score();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL); /* the caller of brigd may have blocked some */
	for (int number = 1; number < NSIG; number++) /* a signal that the caller of brigd ignored would stay ignored in Python and its forks */
		signal(number, SIG_DFL);
	setsid();
	(void)!exec_zygote_python(z, root, ready, &e);
	dup2(log, 2);
	stderr_print_line("brig zygote of profile %s: %s\n", z->setup->profile, e.text);
	_exit(EXIT_FAILURE);
}

/* --- the supervisor's side --- */

/* After a failure the supervisor may be in the host's mounts: if it cannot leave them, it must not build cells. */
static int clone_rootfs_mount(struct zygote_process *z)
{
	struct store_tree tree = { .tree_fd = z->tree_fd };
	struct err        e, second;
	int               fd;

	memcpy(tree.digest, z->digest, sizeof tree.digest);
	fd = base_mounts_clone_rootfs(z->mounts, &tree, z->setup->rootfs, &e);
	if (fd >= 0)
		return fd;
	stderr_print_line("brig supervisor: %s\n", e.text);
	if (base_mounts_enter_own_ns(z->mounts, &second) < 0)
		_exit(EXIT_FAILURE);
	errno = e.errnum;
	return -1;
}

static int start_zygote(struct zygote_process *z, struct one_zygote *one)
{
	scoped_fd         root = clone_rootfs_mount(z);
	int               ready[2];
	struct clone_args args = {
		.flags       = CLONE_PIDFD | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
		.pidfd       = (uint64_t)(uintptr_t)&one->pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;

	if (root < 0 || (z->requests[0] < 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, z->requests) < 0) ||
	    pipe2(ready, O_CLOEXEC) < 0)
		return -1;
	pid = clone3(&args, sizeof args);
	if (pid == 0)
		enter_cell_and_exec_zygote(z, root, ready[1]);
	close(ready[1]);
	*one = (struct one_zygote){ .pid = pid, .pidfd = pid < 0 ? -1 : one->pidfd, .ready_fd = ready[0], .started = clock_ms(CLOCK_MONOTONIC) };
	if (pid < 0)
		fd_closep(&one->ready_fd);
	return pid < 0 ? -1 : 0;
}

static void close_zygote_fds(struct one_zygote *one)
{
	fd_closep(&one->pidfd);
	fd_closep(&one->ready_fd);
}

static double next_zygote_retry_time(void)
{
	return clock_ms(CLOCK_MONOTONIC) + RETRY_MS;
}

/* Requests in the socket are dropped, and their cells get end of file. Later cells do without a zygote. */
static void close_zygote_requests_socket(struct zygote_process *z)
{
	fd_closep(&z->requests[0]);
	fd_closep(&z->requests[1]);
	z->is_up = false;
}

static void disable_zygote_until_retry(struct zygote_process *z)
{
	if (z->next.pidfd >= 0)
		pidfd_send_signal(z->next.pidfd, SIGKILL, NULL, 0); /* a successor has the socket that is closed now */
	close_zygote_fds(&z->next);
	close_zygote_requests_socket(z);
	z->not_before = next_zygote_retry_time();
	stderr_print_line("brig supervisor: profile %s has no zygote: its runs are started cold; another one is tried in %d s\n", z->setup->profile,
	    RETRY_MS / 1000);
}

/* Before not_before it starts none, and closes the orders: no cell waits for a zygote meanwhile. */
static void start_zygote_or_disable(struct zygote_process *z)
{
	if (clock_ms(CLOCK_MONOTONIC) < z->not_before) {
		close_zygote_requests_socket(z);
		return;
	}
	z->generation++;
	if (start_zygote(z, &z->now) == 0)
		return;
	stderr_print_line("brig supervisor: zygote of profile %s: %m\n", z->setup->profile);
	disable_zygote_until_retry(z);
}

/* --- successors --- */

static bool is_zygote_due_for_replacement(const struct zygote_process *z, double now)
{
	return z->now.cells >= z->setup->zygote_cells || now - z->now.started >= (double)z->setup->zygote_ms;
}

bool zygote_process_ensure_started(struct zygote_process *z, int tree_fd, const char *digest)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	if (z->tree_fd >= 0 && strcmp(z->digest, digest) != 0) { /* the zygote gets end of file on the requests, and ends */
		close_zygote_fds(&z->now);
		close_zygote_fds(&z->next);
		fd_closep(&z->tree_fd);
		close_zygote_requests_socket(z);
	}
	if (z->tree_fd < 0) {
		z->tree_fd = fcntl(tree_fd, F_DUPFD_CLOEXEC, 0);
		snprintf(z->digest, sizeof z->digest, "%s", digest);
	}
	z->now.cells++;
	if (z->now.pidfd < 0) {
		start_zygote_or_disable(z);
		return z->now.pidfd >= 0;
	}
	if (z->next.pidfd >= 0 || z->now.ready_fd >= 0 || !is_zygote_due_for_replacement(z, now) || now < z->next_not_before)
		return false;
	if (start_zygote(z, &z->next) == 0)
		return true;
	stderr_print_line("brig supervisor: successor of the zygote of profile %s: %m\n", z->setup->profile);
	z->next_not_before = next_zygote_retry_time();
	return false;
}

/* --- reports --- */

static enum zygote_state zygote_state_of_process(const struct zygote_process *z)
{
	if (z->now.pidfd < 0)
		return ZYGOTE_NONE;
	if (z->now.ready_fd >= 0)
		return ZYGOTE_STARTING;
	return z->next.pidfd >= 0 ? ZYGOTE_REPLACED : ZYGOTE_SERVING;
}

static void reset_report_of_new_zygote(struct zygote_process *z)
{
	if (z->now.pidfd >= 0 && z->report.started_ms != z->now.started) {
		uint32_t generation = z->report.generation + 1;

		z->report            = zygote_report_none;
		z->report.generation = generation;
		z->report.started_ms = z->now.started;
		z->measured          = z->now.started;
	}
}

bool zygote_process_is_measurement_due(const struct zygote_process *z, bool is_quiet)
{
	return zygote_state_of_process(z) == ZYGOTE_SERVING && (is_quiet || clock_ms(CLOCK_MONOTONIC) - z->measured >= MEASURE_MS);
}

void zygote_process_measure_memory(struct zygote_process *z, const struct waiting_forks *waiting)
{
	reset_report_of_new_zygote(z);
	z->measured = clock_ms(CLOCK_MONOTONIC);
	zygote_report_measure_processes(&z->report, z->now.pid, z->now.pidfd, waiting);
}

void zygote_process_write_report(struct zygote_process *z, int report_fd)
{
	reset_report_of_new_zygote(z);
	z->report.state = zygote_state_of_process(z);
	z->report.cells = z->now.cells;
	if (memcmp(&z->told, &z->report, sizeof z->told) != 0)
		zygote_report_write(report_fd, &z->report);
	z->told = z->report;
}

/* --- ready, and ended --- */

static void handle_zygote_exit(struct zygote_process *z)
{
	bool   was_ready = z->now.ready_fd < 0;
	double now       = clock_ms(CLOCK_MONOTONIC);

	close_zygote_fds(&z->now);
	if (was_ready)
		z->ends_until = (z->ends_until > now ? z->ends_until : now) + ENDS_EACH_MS;
	if (!was_ready || z->ends_until > now + ENDS_MAX * ENDS_EACH_MS) {
		disable_zygote_until_retry(z);
		return;
	}
	stderr_print_line("brig supervisor: the zygote of profile %s ended; another one is started\n", z->setup->profile);
	start_zygote_or_disable(z);
}

/* A byte in the pipe says that the zygote is ready; end of file, that it ended before. */
static bool read_zygote_ready_byte(struct one_zygote *one)
{
	char byte;
	bool is_ready = one->ready_fd >= 0 && read(one->ready_fd, &byte, 1) == 1;

	if (is_ready)
		fd_closep(&one->ready_fd);
	return is_ready;
}

struct zygote_status zygote_process_status(const struct zygote_process *z, const char *digest)
{
	if (strcmp(z->digest, digest) != 0)
		return ZYGOTE_STATUS_NONE;
	return (struct zygote_status){
		.requests = z->requests[0], .pidfd = z->now.pidfd, .pid = z->now.pid, .generation = z->generation,
		.is_up = z->is_up, .starts = z->now.ready_fd >= 0, .ahead = z->setup->warm == WARM_READY,
	};
}

void zygote_process_fill_pollfds(const struct zygote_process *z, struct pollfd fds[ZYGOTE_PROCESS_FDS])
{
	const struct one_zygote *one[ZYGOTE_PROCESS_FDS] = { &z->now, &z->next };

	for (size_t i = 0; i < ZYGOTE_PROCESS_FDS; i++)
		fds[i] = (struct pollfd){ .fd = one[i]->ready_fd >= 0 ? one[i]->ready_fd : one[i]->pidfd, .events = POLLIN };
}

void zygote_process_handle_events(struct zygote_process *z, const struct pollfd fds[ZYGOTE_PROCESS_FDS])
{
	if (fds[1].revents && read_zygote_ready_byte(&z->next)) {
		if (z->now.pidfd >= 0)
			pidfd_send_signal(z->now.pidfd, SIGTERM, NULL, 0); /* it takes no more requests, and ends */
		close_zygote_fds(&z->now);
		z->now  = z->next;
		z->next = ONE_ZYGOTE_NONE;
		z->generation++;
		return; /* fds[0] was of the old zygote */
	}
	if (fds[1].revents) {
		close_zygote_fds(&z->next);
		z->next_not_before = next_zygote_retry_time();
		stderr_print_line("brig supervisor: a successor of the zygote of profile %s ended before it was ready; the old one stays\n",
			    z->setup->profile);
	}
	if (fds[0].revents && read_zygote_ready_byte(&z->now))
		z->is_up = true; /* it stays true while the zygote is replaced: requests then wait for the new one */
	else if (fds[0].revents)
		handle_zygote_exit(z);
}
