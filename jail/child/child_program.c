/* child_program.c - the steps of the program: everything is given up, then exec */
#define _GNU_SOURCE
#include "child.h"
#include "filter_notice.h"
#include "packet.h"
#include "guest_runner.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { CLEAR_OF_LOW = 32 };

/* Descriptors of a fork while it waits. Lower numbers belong to the program. */
enum { FD_HANDED_REPORT = GUEST_RUNNER_FD + 1, FD_HANDED_ORDERS, FD_HANDED_ORDER_FILE, FD_HANDED_CODE, FD_HANDED_NULL, FD_HANDED_END };

/*
 * Copies the descriptors to high numbers first, so that no dup2() overwrites one of them. stdin stays open until the
 * spec has whether it is wanted. In a fork that execs, the exec closes the report socket.
 */
static int program_place_descriptors(struct child_ctx *c)
{
	struct {
		int *fd, to;
	} rows[] = {
		{ &c->fork.handed_fd[HANDED_IN], 0 },
		{ &c->fork.handed_fd[HANDED_OUT], 1 },
		{ &c->fork.handed_fd[HANDED_ERR], 2 },
		{ &c->fork.handed_fd[HANDED_RESULT], GUEST_RUNNER_FD },
		{ &c->report_fd, FD_HANDED_REPORT },
		{ &c->fork.handed_fd[HANDED_ORDERS], FD_HANDED_ORDERS },
		{ &c->fork.handed_fd[HANDED_ORDER_FILE], FD_HANDED_ORDER_FILE },
		{ &c->fork.handed_fd[HANDED_CODE], FD_HANDED_CODE },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int high = fcntl(*rows[i].fd, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);

		if (high < 0)
			return -errno; /* the report can be sent: report_fd is valid by its old number or its new one */
		*rows[i].fd = high;
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (dup2(*rows[i].fd, rows[i].to) < 0)
			return -errno;
		*rows[i].fd = rows[i].to;
	}
	if (close_range(STDERR_FILENO + 1, GUEST_RUNNER_FD - 1, 0) < 0 || (!c->fork.stays && fcntl(FD_HANDED_REPORT, F_SETFD, FD_CLOEXEC) < 0))
		return -errno;
	return child_sys(close_range(FD_HANDED_NULL, ~0u, 0));
}

static int program_start_session(struct child_ctx *c)
{
	(void)c;
	return child_sys(setsid());
}

/*
 * Forty processes that sleep for a microsecond each wake so often that Linux 6.18 does not run the tasks that they
 * preempt for half a second, even in other groups. With this slack every timed wait may take half a millisecond
 * longer, and wakes together with others. The filter of the shipped policies and a read-only /proc keep the program
 * from lowering it.
 */
#define TIMER_SLACK_NS 500000ul

/* The program must not inherit a caller's real-time priority, for the CPU or the disk, or its negative nice value. */
static int program_reset_scheduling(struct child_ctx *c)
{
	enum { IOPRIO_WHO_PROCESS = 1, IOPRIO_NONE = 0 };
	const struct sched_param zero = { 0 };
	int nice, policy = sched_getscheduler(0);

	(void)c;
	if (policy < 0)
		return -errno;
	policy &= ~SCHED_RESET_ON_FORK;
	/* IDLE and BATCH are kept: they take less than OTHER, and a plain id may leave IDLE only with RLIMIT_NICE. */
	if (policy != SCHED_IDLE && policy != SCHED_BATCH && sched_setscheduler(0, SCHED_OTHER, &zero) < 0)
		return -errno;
	errno = 0;
	nice  = getpriority(PRIO_PROCESS, 0);
	if ((nice == -1 && errno != 0) || (nice < 0 && setpriority(PRIO_PROCESS, 0, 0) < 0))
		return -errno;
	if (syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_NONE) < 0 && errno != ENOSYS)
		return -errno;
	if (prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0) < 0)
		return -errno;
	return child_sys(personality(PER_LINUX)); /* undoes a caller's setarch -R */
}

static int reset_signal_dispositions(void)
{
	struct sigaction preset = { .sa_handler = SIG_DFL };

	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, &preset, NULL) < 0 && errno != EINVAL)
			return -errno;
	return 0;
}

/* Undoes what the caller ignored or blocked. A fork that stays keeps the dispositions: its interpreter has set them. */
static int program_reset_signals(struct child_ctx *c)
{
	sigset_t none;
	int      r = c->fork.stays ? 0 : reset_signal_dispositions();

	sigemptyset(&none);
	return r < 0 ? r : child_sys(sigprocmask(SIG_SETMASK, &none, NULL));
}

int child_empty_bounding_set(struct child_ctx *c)
{
	(void)c;
	for (int cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		if (cap > 62) /* the sets have 64 bits */
			return -EINVAL;
	return errno == EINVAL ? 0 : -errno; /* EINVAL: one past the last that this kernel knows */
}

int child_lock_securebits(struct child_ctx *c)
{
	(void)c;
	return child_sys(prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
			       SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
			       SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED, 0, 0, 0));
}

static int program_set_ids(struct child_ctx *c)
{
	if (setresgid(c->fork.program_id, c->fork.program_id, c->fork.program_id) < 0)
		return -errno;
	return child_sys(setresuid(c->fork.program_id, c->fork.program_id, c->fork.program_id));
}

static int program_drop_capabilities(struct child_ctx *c)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   none[2] = { { 0 } };

	(void)c;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -errno;
	return child_sys(syscall(SYS_capset, &head, none));
}

/* Makes a fork that stays dumpable, as an exec would. Until now it may have held what no process of the cell may see. */
static int program_make_dumpable(struct child_ctx *c)
{
	return c->fork.stays ? child_sys(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)) : 0;
}

struct rlimit_row {
	int    which;
	rlim_t soft, hard;
};

/*
 * Never sets more than the hard limit that the process had. The kernel raises a limit for a privileged process, and
 * answers EPERM to others: in both cases the old hard limit is set again.
 */
static int set_rlimit(const struct rlimit_row *row)
{
	struct rlimit set = { row->soft, row->hard }, old;
	int           r   = child_sys(prlimit(0, row->which, &set, &old));

	if (r == -EPERM && getrlimit(row->which, &old) < 0)
		return -errno;
	if ((r < 0 && r != -EPERM) || old.rlim_max >= set.rlim_max)
		return r;
	set.rlim_max = old.rlim_max;
	if (set.rlim_cur > set.rlim_max)
		set.rlim_cur = set.rlim_max;
	return child_sys(setrlimit(row->which, &set));
}

static int set_rlimits(struct child_ctx *c, const struct rlimit_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		c->detail = (int)i;
		r         = set_rlimit(&rows[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* RLIMIT_AS is never limited: that kills numpy without a message (OpenBLAS maps 128 MiB a thread). */
int child_set_fixed_rlimits(struct child_ctx *c)
{
	static const struct rlimit_row rows[] = {
		{ RLIMIT_CORE,       1,              1 },          /* 1: skips piped handlers, 0 would run them as root */
		{ RLIMIT_STACK,      8 * MIB,        64 * MIB },
		{ RLIMIT_MEMLOCK,    64 * KIB,       64 * KIB },
		{ RLIMIT_MSGQUEUE,   0,              0 },
		{ RLIMIT_NICE,       0,              0 },
		{ RLIMIT_RTPRIO,     0,              0 },
		{ RLIMIT_SIGPENDING, 1024,           1024 },
		{ RLIMIT_AS,         RLIM_INFINITY,  RLIM_INFINITY },
		{ RLIMIT_FSIZE,      RLIM_INFINITY,  RLIM_INFINITY }, /* the tmpfs answers ENOSPC */
	};

	return set_rlimits(c, rows, ARRAY_LEN(rows));
}

/* The fork server has set the others. RTTIME would kill a process with real-time priority: after scheduling. */
static int program_set_rlimits(struct child_ctx *c)
{
	const struct child_rlimits *o      = &c->fork.rlimits;
	const struct rlimit_row     rows[] = {
		{ RLIMIT_NOFILE,     o->files,       o->files },
		{ RLIMIT_CPU,        o->cpu_s,       o->cpu_s_max }, /* per process; the group counts the tree */
		{ RLIMIT_NPROC,      o->processes,   o->processes }, /* of this id, in this user namespace */
		{ RLIMIT_DATA,       o->data,        o->data },    /* infinite where a control group limits memory */
		{ RLIMIT_RTTIME,     0,              0 },
	};

	return set_rlimits(c, rows, ARRAY_LEN(rows));
}

/*
 * Makes a zygote's fork whose spec asks for an exec go on like a forker's. Closes what after-fork hooks of
 * imported modules have opened since the fork entered the cell; where the policy refuses close_range(), that stays
 * open.
 */
static int prepare_fork_for_exec(struct child_ctx *c)
{
	c->fork.stays = false;
	(void)!close_range(FD_HANDED_END, ~0u, 0);
	return fcntl(FD_HANDED_REPORT, F_SETFD, FD_CLOEXEC) < 0 ? -errno : reset_signal_dispositions();
}

/* A fork made ahead reads its order after all steps: child_read_spec_file(). */
static int program_read_spec(struct child_ctx *c)
{
	int r = c->fork.is_ahead ? 0 : child_read_spec_file(c);

	return r == 0 && !c->fork.is_ahead && c->fork.spec.executes && c->fork.stays ? prepare_fork_for_exec(c) : r;
}

/* A fork that stays takes its streams after all steps. The /dev/null is the cell's, not the zygote's. */
static int program_open_streams(struct child_ctx *c)
{
	int fd = open("/dev/null", O_RDONLY);

	if (fd < 0 || dup2(fd, FD_HANDED_NULL) < 0 || close(fd) < 0)
		return -errno;
	c->fork.handed_fd[HANDED_NULL] = FD_HANDED_NULL;
	return c->fork.stays ? 0 : child_finish_streams(c);
}

static int enter_workdir(struct child_ctx *c)
{
	c->detail = CHILD_DETAIL_ASKED;
	return c->fork.lists->cwd[0] ? child_sys(chdir(c->fork.lists->cwd[0])) : 0;
}

/* The order may name another directory, relative to /workspace or absolute. */
static int program_enter_workdir(struct child_ctx *c)
{
	umask(022);
	if (chdir("/workspace") < 0)
		return -errno;
	return c->fork.is_ahead ? 0 : enter_workdir(c);
}

static int program_set_no_new_privs(struct child_ctx *c)
{
	(void)c;
	return child_sys(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
}

static int program_report_exec(struct child_ctx *c)
{
	if (!c->fork.stays)
		return child_send_report(c, CHILD_EXECS, NULL, 0);
	c->fork.init_cpu_ns = child_cpu_ns(1);
	return 0;
}

static int install_notifying_filter(const struct child_ctx *c, unsigned flags)
{
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER | flags, c->fork.notifying);
}

/* WAIT_KILLABLE_RECV: no signal interrupts a call that the supervisor answers. No program expects EINTR of socket(). */
static int install_filter_with_listener(const struct child_ctx *c)
{
	int listener = install_notifying_filter(c, SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);

	if (listener < 0 && errno == EINVAL) /* before 5.19 */
		listener = install_notifying_filter(c, 0);
	return listener < 0 ? -errno : listener;
}

/* The supervisor fetches the listener from here, or replies that it may not: -ETOOMANYREFS. 0 or another -errno. */
static int offer_listener_to_supervisor(const struct child_ctx *c, struct child_report *report, int listener)
{
	char    is_taken = 0;
	ssize_t n;
	int     r;

	report->detail = listener;
	r              = packet_send(c->report_fd, report, sizeof *report, NULL, 0);
	report->detail = 0;
	if (r < 0)
		return r;
	do
		n = read(c->report_fd, &is_taken, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return n < 0 ? -errno : -EPIPE;
	return is_taken ? 0 : -ETOOMANYREFS;
}

/*
 * Must be the first thing under the filter: a call that notifies the listener before the supervisor has it would wait
 * for ever, so this makes no call but those that no filter refuses. ETOOMANYREFS: an earlier program with this id has
 * left so many descriptors in queues of sockets that it may have no more there. Those that no process can receive any
 * more the kernel finds some milliseconds after its end; those that another process holds stay.
 */
static int send_seccomp_listener(const struct child_ctx *c, int listener)
{
	enum { TRIES = 300000 }; /* of a microsecond or two */
	struct child_report report;
	int                 r;

	memset(&report, 0, sizeof report); /* padding too */
	report.message = CHILD_LISTENER;
	r              = packet_send(c->report_fd, &report, sizeof report, &listener, 1);
	if (r == -ETOOMANYREFS)
		r = offer_listener_to_supervisor(c, &report, listener);
	for (int i = 0; i < TRIES && r == -ETOOMANYREFS; i++)
		r = packet_send(c->report_fd, &report, sizeof report, &listener, 1);
	return r;
}

/* As in containers: it has a listener and can have but one (EBUSY), a filter refuses seccomp(), or an old kernel. */
static bool is_listener_unavailable(int answer)
{
	return answer == -EBUSY || answer == -EINVAL || answer == -EPERM || answer == -ENOSYS || answer == -EOPNOTSUPP;
}

/*
 * seccomp() makes the listener, so the listener is sent when the filter is on already. Where there can be no
 * listener, a filter that refuses the same calls is installed, and the record reports that the refused calls are not
 * known.
 */
static int program_install_filter(struct child_ctx *c)
{
	const struct sock_fprog *notifying = c->fork.notifying;
	int listener = filter_has_notice(notifying->filter, notifying->len) ? install_filter_with_listener(c) : -EBUSY, r;

	if (is_listener_unavailable(listener))
		return child_sys(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, c->fork.filter, 0, 0));
	if (listener < 0)
		return listener;
	r = send_seccomp_listener(c, listener);
	return close(listener) < 0 ? -errno : r;
}

static int program_exec_command(struct child_ctx *c)
{
	int r = -ENOENT;

	if (c->fork.stays)
		return 0;
	for (int i = 0; c->fork.lists->path[i]; i++) {
		execve(c->fork.lists->path[i], c->fork.lists->argv, c->fork.lists->envp);
		if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		r = -errno;
	}
	return r;
}

/* --- after the steps, in a fork only: under the filter --- */

int child_report_confined(const struct child_ctx *c)
{
	struct child_report report;

	memset(&report, 0, sizeof report);
	report.message = CHILD_EXECS;
	report.detail = c->fork.stays ? 0 : CHILD_DETAIL_EXECS;
	report.cpu_ns = child_cpu_ns(0) + c->fork.init_cpu_ns - c->cpu_before_ns;
	return write(c->report_fd, &report, sizeof report) == sizeof report ? 0 : -errno;
}

bool child_wait_for_spec(const struct child_ctx *c, int wait_ms)
{
	struct pollfd order = { .fd = c->fork.handed_fd[HANDED_ORDERS], .events = POLLIN };

	return poll(&order, 1, wait_ms) != 0;
}

/* Copies what fits. The last byte of the area stays zero. */
static void copy_to_proc_args(char *to, const char *from, const char *end)
{
	size_t len = (size_t)(end - from);

	memcpy(to, from, len < CHILD_SHOWN_BYTES ? len : CHILD_SHOWN_BYTES - 1);
}

/*
 * Moves the socket to TOOLS_FD. A hook of an imported module may have opened that number: this fails then, because
 * the module still uses it.
 */
static int receive_tools_socket(const struct child_ctx *c)
{
	int fd = run_spec_receive_tools_socket(c->fork.handed_fd[HANDED_ORDERS]);

	if (fd < 0 || fd == TOOLS_FD)
		return fd < 0 ? fd : 0;
	if (fcntl(TOOLS_FD, F_GETFD) >= 0)
		return -EBUSY;
	return dup2(fd, TOOLS_FD) < 0 ? -errno : child_sys(close(fd));
}

int child_read_spec_file(struct child_ctx *c)
{
	const struct exec_args *args = &c->fork.spec.exec_args;
	const int              *fds  = c->fork.handed_fd;
	char                   *text;
	int r = run_spec_file_read(fds[HANDED_ORDERS], fds[HANDED_ORDER_FILE], &c->fork.spec, &text, &c->fork.code);

	if (r == 0 && c->fork.spec.tools)
		r = receive_tools_socket(c);
	if (r < 0)
		return r;
	if (!exec_args_split(args, text, c->fork.lists))
		return -EBADMSG;
	if (c->fork.shown) {
		const char *end = c->fork.lists->path[0] + args->len, *env = args->envc ? c->fork.lists->envp[0] : end;

		copy_to_proc_args(c->fork.shown, c->fork.lists->argv[0], env);
		copy_to_proc_args(c->fork.shown + CHILD_SHOWN_BYTES, env, end);
	}
	return 0;
}

int child_finish_streams(struct child_ctx *c)
{
	int r = child_write_all(c->fork.handed_fd[HANDED_CODE], c->fork.code, c->fork.spec.code_len);

	if (r < 0)
		return r;
	if (!c->fork.spec.stdin_pipe && dup2(FD_HANDED_NULL, 0) < 0)
		return -errno;
	if (!c->fork.spec.result_pipe && close(GUEST_RUNNER_FD) < 0)
		return -errno;
	for (int fd = FD_HANDED_REPORT + !c->fork.stays; fd < FD_HANDED_END; fd++)
		if (close(fd) < 0)
			return -errno;
	return 0;
}

static int report_confined_step(struct child_ctx *c)
{
	return child_report_confined(c);
}

static unsigned program_step_number(const char *name)
{
	unsigned step = 0;

	while (strcmp(child_program_steps[step].name, name) != 0)
		step++;
	return step;
}

void child_enter_workdir(struct child_ctx *c)
{
	int r = enter_workdir(c);

	if (r < 0)
		child_report_failure_and_exit(c, CHILD_PROGRAM, program_step_number("workdir"), -r);
}

void child_exec_ordered_command(struct child_ctx *c)
{
	static const struct {
		const char    *name; /* the row of the program's table under which its failure is reported */
		child_step_fn *run;
	} steps[] = {
		{ "signals", prepare_fork_for_exec },
		{ "streams", child_finish_streams },
		{ "say-exec", report_confined_step },
		{ "exec", program_exec_command },
	};

	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int r = steps[i].run(c);

		if (r < 0)
			child_report_failure_and_exit(c, CHILD_PROGRAM, program_step_number(steps[i].name), -r);
	}
	_exit(EXIT_FAILURE); /* the last one returns only to fail */
}

/* clang-format off */
/* Read top to bottom: the order is the security argument. */
const struct child_step child_program_steps[] = {
	{ "close-descriptors", program_place_descriptors,    "first, so that nothing of the host stays open" },
	{ "session",           program_start_session,        "no terminal and no job control of the caller" },
	{ "signals",           program_reset_signals,        "dispositions and mask as in a new process" },
	{ "scheduling",        program_reset_scheduling,     "no real-time policy, negative nice value or personality of the caller; timers are coalesced" },
	{ "rlimits",           program_set_rlimits,          "before the program runs; hard limits, which it cannot raise" },
	{ "bounding-set",      child_empty_bounding_set,     "needs CAP_SETPCAP, which is dropped below" },
	{ "securebits",        child_lock_securebits,        "locked: id 0 gives no capability" },
	{ "ids",               program_set_ids,              "the group first: with the new user id it would be refused" },
	{ "capabilities",      program_drop_capabilities,    "all sets empty, after the last step that needs one" },
	{ "own-memory",        program_make_dumpable,        "for a fork, which executes nothing: else root would own its /proc/self" },
	{ "read-order",        program_read_spec,            "what to run, parsed without any privilege" },
	{ "set-arguments",     child_set_proc_args,          "for a zygote's fork: what /proc/self/cmdline shows; before the filter" },
	{ "streams",           program_open_streams,         "those that were asked for, and main.py for an exec" },
	{ "workdir",           program_enter_workdir,        "a directory below the new root" },
	{ "no-new-privs",      program_set_no_new_privs,     "the filter and Landlock need it" },
	{ "landlock",          child_restrict_with_landlock, "enforces the rules of the mounts a second time" },
	{ "say-exec",          program_report_exec,          "the wall clock starts here" },
	{ "syscall-filter",    program_install_filter,       "last, because it forbids most of the steps above" },
	{ "exec",              program_exec_command,         "executes the program; a zygote's fork continues instead" },
	{ NULL, NULL, NULL },
};
/* clang-format on */
