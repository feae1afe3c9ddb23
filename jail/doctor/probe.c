#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/* clang-format off */
/* In the order in which a jail is built: the first missing row is the one to repair first. */
const struct probe_row probe_rows[] = {
	/* name                 needed by      probe                      since    kernel option           what brig does with it */
	{ "user-namespace",     NEED_DEFAULT,  probe_user_namespace,      "3.8",   "CONFIG_USER_NS",       "the jail's root has no rights on the host; two levels deep" },
	{ "id-range",           NEED_SERVICE,  probe_id_range,            "3.8",   "CONFIG_USER_NS",       "the program and its PID 1 have different host uids" },
	{ "mount-namespace",    NEED_DEFAULT,  probe_mount_namespace,     "3.8",   NULL,                   "mounts of a jail never reach the host" },
	{ "pid-namespace",      NEED_DEFAULT,  probe_pid_namespace,       "3.8",   "CONFIG_PID_NS",        "a jail sees its own processes and dies as a whole" },
	{ "net-namespace",      NEED_DEFAULT,  probe_net_namespace,       "3.8",   "CONFIG_NET_NS",        "no network but a loopback of its own" },
	{ "ipc-namespace",      NEED_DEFAULT,  probe_ipc_namespace,       "3.8",   "CONFIG_IPC_NS",        "no shared memory or queues with the host" },
	{ "uts-namespace",      NEED_DEFAULT,  probe_uts_namespace,       "3.8",   "CONFIG_UTS_NS",        "the host's name stays hidden" },
	{ "cgroup-namespace",   NEED_DEFAULT,  probe_cgroup_namespace,    "4.6",   "CONFIG_CGROUPS",       "the host's cgroup paths stay hidden" },
	{ "clone3",             NEED_DEFAULT,  probe_clone3,              "5.3",   NULL,                   "PID 1 of a jail starts in all its namespaces at once" },
	{ "setns-pidfd",        NEED_OPTIONAL, probe_setns_pidfd,         "5.8",   NULL,                   "warm runs enter a jail; without it, all runs are cold" },
	{ "fork-into-pid-ns",   NEED_OPTIONAL, probe_fork_into_pid_ns,    "5.8",   "CONFIG_PID_NS",        "warm runs are forked into it; without it, all are cold" },
	{ "proc",               NEED_DEFAULT,  probe_proc,                "5.8",   "CONFIG_PROC_FS",       "a /proc with the jail's own processes and nothing else" },
	{ "tmpfs",              NEED_DEFAULT,  probe_tmpfs,               "3.8",   "CONFIG_TMPFS",         "/tmp and /workspace with a size and a number of files" },
	{ "fsmount",            NEED_DEFAULT,  probe_fsmount,             "5.2",   NULL,                   "mounts by descriptor, so that no path can be swapped" },
	{ "open-tree",          NEED_DEFAULT,  probe_open_tree,           "5.2",   NULL,                   "the rootfs is cloned from the store by descriptor" },
	{ "mount-setattr",      NEED_DEFAULT,  probe_mount_setattr,       "5.12",  NULL,                   "read-only, nosuid, nodev for a whole tree at once" },
	{ "pivot-root",         NEED_DEFAULT,  probe_pivot_root,          "3.8",   NULL,                   "the host's tree is detached, not only hidden" },
	{ "openat2",            NEED_DEFAULT,  probe_openat2,             "5.6",   NULL,                   "opens files without following links out of a tree" },
	{ "device-nodes",       NEED_DEFAULT,  probe_device_nodes,        NULL,    NULL,                   "/dev of a jail: null, zero, full, random, urandom" },
	{ "close-range",        NEED_DEFAULT,  probe_close_range,         "5.9",   NULL,                   "no descriptor of brig leaks into a jail" },
	{ "memfd-exec",         NEED_DEFAULT,  probe_memfd_exec,          "3.19",  "CONFIG_MEMFD_CREATE",  "PID 1 of a jail is run from a sealed memfd" },
	{ "pidfd",              NEED_DEFAULT,  probe_pidfd,               "5.4",   NULL,                   "signals and waits that cannot hit a recycled pid" },
	{ "no-new-privs",       NEED_DEFAULT,  probe_no_new_privs,        "3.5",   NULL,                   "setuid programs give no rights" },
	{ "capabilities",       NEED_DEFAULT,  probe_capabilities,        "3.8",   NULL,                   "all capability sets are empty, securebits are locked" },
	{ "seccomp",            NEED_DEFAULT,  probe_seccomp,             "4.14",  "CONFIG_SECCOMP_FILTER", "system calls by allow-list" },
	{ "landlock",           NEED_OPTIONAL, probe_landlock,            "5.13",  "CONFIG_SECURITY_LANDLOCK", "a second bound on access to files" },
	{ "keyring",            NEED_DEFAULT,  probe_keyring,             NULL,    "CONFIG_KEYS",          "a new session keyring, without keys of the caller" },
	{ "memory-limit",       NEED_SERVICE,  probe_memory_limit,        NULL,    "CONFIG_MEMCG",         "one program cannot take the host's memory" },
	{ "pids-limit",         NEED_SERVICE,  probe_pids_limit,          NULL,    "CONFIG_CGROUP_PIDS",   "a fork bomb stays small" },
	{ "cpu-limit",          NEED_SERVICE,  probe_cpu_limit,           NULL,    "CONFIG_CFS_BANDWIDTH", "a share of the CPUs" },
	{ "cpu-time",           NEED_SERVICE,  probe_cpu_time,            NULL,    "CONFIG_CGROUP_CPUACCT", "CPU time of all processes, measured and limited" },
	{ "swap-limit",         NEED_OPTIONAL, probe_swap_limit,          NULL,    "CONFIG_MEMCG",         "the memory limit holds for swap, too" },
	{ "io-figures",         NEED_OPTIONAL, probe_io_figures,          NULL,    "CONFIG_BLK_CGROUP",    "bytes read and written in the result record" },
	{ "memory-peak",        NEED_OPTIONAL, probe_memory_peak,         "5.19",  "CONFIG_MEMCG",         "memory_peak_bytes in the result record" },
	{ "pids-peak",          NEED_OPTIONAL, probe_pids_peak,           "6.1",   "CONFIG_CGROUP_PIDS",   "pids_peak in the result record" },
	{ "clone-into-cgroup",  NEED_OPTIONAL, probe_clone_into_group,    "5.7",   "CONFIG_CGROUPS",       "PID 1 starts inside its limits; without it, it joins them" },
	{ "cgroup-kill",        NEED_OPTIONAL, probe_group_kill,          "5.14",  "CONFIG_CGROUPS",       "one write kills a jail; without it, PID 1 is killed" },
	{ "profile",            NEED_DEFAULT,  probe_profile,             NULL,    NULL,                   "the profile basic can be read" },
	{ "rootfs",             NEED_DEFAULT,  probe_rootfs,              NULL,    NULL,                   "the tree that becomes / of a jail" },
	{ "runtime-dir",        NEED_DEFAULT,  probe_runtime_dir,         NULL,    NULL,                   "sockets and the locks on host uids" },
	{ "id-pool",            NEED_SERVICE,  probe_id_pool,             NULL,    NULL,                   "host uids that only jails have" },
	{ "program",            NEED_DEFAULT,  probe_program,             NULL,    NULL,                   "everything together: a program runs in a jail" },
	{ "kernel",             NEED_INFO,     probe_kernel,              NULL,    NULL,                   "which kernel this is" },
	{ "layers",             NEED_INFO,     probe_layers,              NULL,    NULL,                   "security modules and filters that may refuse calls" },
	{ "cgroup-version",     NEED_INFO,     probe_group_version,       NULL,    NULL,                   "which version of control groups" },
	{ "namespace-limits",   NEED_INFO,     probe_namespace_limits,    NULL,    NULL,                   "how many jails can exist at once" },
	{ "socket-memory",      NEED_INFO,     probe_socket_memory,       NULL,    NULL,                   "memory that sockets of all jails may hold" },
	{ "network",            NEED_INFO,     probe_network,             NULL,    NULL,                   "hosts by name: brig-proxy and a resolver" },
	{ "core-pattern",       NEED_INFO,     probe_core_pattern,        NULL,    NULL,                   "where the kernel sends core dumps" },
	{ "protected-hardlinks", NEED_INFO,    probe_protected_hardlinks, NULL,    NULL,                   "users cannot make hard links to files of the store" },
};
/* clang-format on */
const size_t probe_rows_len = ARRAY_LEN(probe_rows);

unsigned probe_deadline_ms(const struct probe_row *row)
{
	return row->run == probe_program ? 2 * PROBE_DEADLINE_MS : PROBE_DEADLINE_MS;
}

static _Noreturn void run_child(const struct probe_row *row, const struct surroundings *at, int report)
{
	struct probe p = { .row = row, .at = at };
	ssize_t      n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!lifeline_open(&p) || !row->run(&p))
		p.finding.result = RESULT_MISSING;
	n = write(report, &p.finding, sizeof p.finding); /* smaller than PIPE_BUF: written as a whole or not at all */
	_exit(n == sizeof p.finding ? 0 : 1);
}

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

enum answer { ANSWER_CAME, ANSWER_NONE, ANSWER_LATE };

static enum answer await_report(int report, unsigned deadline_ms, struct finding *ret)
{
	long long      end = now_ms() + deadline_ms;
	struct pollfd  ready = { .fd = report, .events = POLLIN };
	struct finding got;
	int            r;

	do {
		long long left = end - now_ms();

		r = poll(&ready, 1, left > 0 ? (int)left : 0);
	} while (r < 0 && errno == EINTR);
	if (r == 0)
		return ANSWER_LATE;
	if (read(report, &got, sizeof got) != sizeof got)
		return ANSWER_NONE;
	*ret = got;
	return ANSWER_CAME;
}

/*
 * Kills and reaps all that the probe has started, which is in its process group. Orphans are children of this process, a subreaper.
 * Returns the wait status of the probe.
 */
static int end_group(pid_t child)
{
	int status = 0, other;

	kill(-child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	while (waitpid(-child, &other, 0) > 0 || errno == EINTR)
		errno = 0;
	return status;
}

static void tell_death(int status, const struct surroundings *at, struct finding *f)
{
	*f = (struct finding){ .result = RESULT_MISSING };
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
		f->by = REFUSER_FILTER;
		snprintf(f->cause, sizeof f->cause, "the probe was killed by SIGSYS (%s)", refuser_text(REFUSER_FILTER));
		refusal_fix(&(struct refusal){ .errnum = 0 }, REFUSER_FILTER, at, f->fix, sizeof f->fix);
	} else if (WIFSIGNALED(status)) {
		snprintf(f->cause, sizeof f->cause, "the probe was killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
	} else {
		snprintf(f->cause, sizeof f->cause, "the probe ended with status %d and no result", WEXITSTATUS(status));
	}
}

static void tell_late(unsigned deadline_ms, struct finding *f)
{
	*f = (struct finding){ .result = RESULT_MISSING, .errnum = ETIMEDOUT };
	snprintf(f->cause, sizeof f->cause, "timed out after %u ms", deadline_ms);
	snprintf(f->fix, sizeof f->fix, "run brig doctor again; if it stays, dmesg says what the kernel waits for");
}

static void tell_unstarted(const char *what, struct finding *f)
{
	*f = (struct finding){ .result = RESULT_MISSING, .errnum = errno };
	snprintf(f->cause, sizeof f->cause, "%s: %s", what, strerror(f->errnum));
	snprintf(f->fix, sizeof f->fix, "raise ulimit -u and -n, or the limits of brig's control group");
}

static void run_forked(const struct probe_row *row, const struct surroundings *at, unsigned deadline_ms, struct finding *ret)
{
	int         ends[2], status;
	pid_t       child;
	enum answer answer;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return tell_unstarted("pipe", ret);
	scoped_fd from = ends[0], to = ends[1];

	child = fork();
	if (child < 0)
		return tell_unstarted("fork", ret);
	setpgid(child, child); /* in parent and child, so that the group exists before either goes on */
	if (child == 0)
		run_child(row, at, to);
	fd_closep(&to);
	answer = await_report(from, deadline_ms, ret);
	if (answer == ANSWER_NONE) /* it sent nothing: wait until it has ended, or end_group() would see our SIGKILL as the cause */
		while (waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
	status = end_group(child);
	if (answer == ANSWER_NONE)
		tell_death(status, at, ret);
	if (answer == ANSWER_LATE)
		tell_late(deadline_ms, ret);
	if (answer != ANSWER_CAME)
		groups_sweep(at);
}

void probe_run(const struct probe_row *row, const struct surroundings *at, unsigned deadline_ms, struct finding *ret)
{
	sigset_t polite, before;

	sigemptyset(&polite); /* Ctrl-C takes effect after the probe, which may have a control group to remove */
	sigaddset(&polite, SIGINT);
	sigaddset(&polite, SIGTERM);
	sigaddset(&polite, SIGHUP);
	sigprocmask(SIG_BLOCK, &polite, &before);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	run_forked(row, at, deadline_ms, ret);
	if (ret->result != RESULT_OK && !ret->fix[0])
		snprintf(ret->fix, sizeof ret->fix, "none known: please report it with the output of brig doctor --json");
	ret->result = result_settle(ret->result, row->need, at->is_root || at->is_monitor);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
