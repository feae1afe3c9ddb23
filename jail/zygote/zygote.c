#define _GNU_SOURCE

#include "zygote.h"

#include "packet.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

extern char **environ;

/* --- begin --- */

static int map_filter(struct sock_fprog *ret)
{
	off_t len = lseek(ZYGOTE_FD_FILTER, 0, SEEK_END);

	if (len <= 0)
		return -1;
	ret->filter = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, ZYGOTE_FD_FILTER, 0);
	ret->len    = (unsigned short)((size_t)len / sizeof *ret->filter);
	return ret->filter == MAP_FAILED ? -1 : close(ZYGOTE_FD_FILTER);
}

static int watch_children(struct zygote *z)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	z->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return z->signals < 0 ? -1 : 0;
}

/* The interpreter's own: it ignores SIGPIPE and SIGXFSZ, and listens to SIGINT. */
static void keep_dispositions(struct zygote *z)
{
	for (int s = 1; s < NSIG; s++)
		if (sigaction(s, NULL, &z->kept[s]) < 0)
			z->kept[s].sa_handler = SIG_DFL;
}

/*
 * A thread that an import has left would be missing in each fork, with whatever it had locked. The kernel refuses this
 * to who has threads, and for others it does nothing.
 */
static int check_threads(void)
{
	return unshare(CLONE_THREAD);
}

int zygote_open(struct zygote *z)
{
	if (check_threads() < 0 || chdir("/") < 0)
		return -1;
	if (map_filter(&z->filter) < 0 || watch_children(z) < 0)
		return -1;
	keep_dispositions(z);
	z->landlock_abi = (unsigned)landlock_abi();
	if (prctl(PR_GET_NAME, z->name) < 0 || prctl(PR_SET_NAME, "brig-zygote") < 0)
		return -1;
	return write(ZYGOTE_FD_READY, "r", 1) == 1 ? close(ZYGOTE_FD_READY) : -1;
}

/* --- orders, and ends --- */

static void say(int answer, enum zygote_kind kind, int status)
{
	struct zygote_word word = { .kind = kind, .status = status };

	packet_send(answer, &word, sizeof word, NULL, 0); /* a launcher that is gone needs no answer */
}

static void tell_end(struct zygote *z, pid_t pid, int status)
{
	for (size_t i = 0; i < z->runs; i++)
		if (z->run[i].pid == pid) {
			say(z->run[i].answer, ZYGOTE_ENDED, status);
			close(z->run[i].answer);
			z->run[i] = z->run[--z->runs];
			return;
		}
}

/* SIGTERM: a successor takes the orders from here on. */
static void hear_signals(struct zygote *z)
{
	struct signalfd_siginfo info;
	int                     status;
	pid_t                   pid;

	while (read(z->signals, &info, sizeof info) > 0)
		z->is_last |= info.ssi_signo == SIGTERM;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		tell_end(z, pid, status);
}

/* A launcher has less power than we, and lends none of ours to a program: no root in it, whatever it asks. */
static bool are_ids(const struct zygote_order *o)
{
	return o->program_id != 0 && (o->init_id == 0 || o->init_id == o->program_id);
}

static bool is_sound(const struct zygote_request *r)
{
	const struct zygote_order *o = &r->order;

	return are_ids(o) && o->joins <= GROUP_TREES_MAX && o->clones_into <= 1 && words_are_bounded(&o->order.words) &&
	       r->n == ZYGOTE_GROUPS + o->joins + o->clones_into;
}

static void forget(struct zygote_request *r)
{
	while (r->n)
		close(r->fds[--r->n]);
}

/* An order that is none is dropped: who sent it sees the end of its sockets. */
static bool take_order(struct zygote *z, struct zygote_request *ret)
{
	ssize_t got = packet_receive(ZYGOTE_FD_ORDERS, &ret->order, sizeof ret->order, ret->fds, ZYGOTE_ORDER_FDS_MAX, &ret->n);

	if (got == sizeof ret->order && is_sound(ret))
		return true;
	if (got >= 0)
		forget(ret);
	z->is_last |= got == 0;
	return false;
}

bool zygote_await(struct zygote *z, struct zygote_request *ret)
{
	while (!z->is_last || z->runs) {
		struct pollfd fds[] = { { z->signals, POLLIN, 0 }, { z->is_last ? -1 : ZYGOTE_FD_ORDERS, POLLIN, 0 } };

		if (poll(fds, ARRAY_LEN(fds), -1) < 0)
			continue;
		if (fds[0].revents) /* always first: PID 1 of a dead cell waits for it */
			hear_signals(z);
		if (fds[1].revents && !z->is_last && take_order(z, ret))
			return true;
	}
	return false;
}

/* --- forking --- */

/*
 * glibc's fork() cannot be told the group, and without it the thread id that glibc keeps would be stale: the kernel
 * writes it where glibc wants it. Its robust list is gone in the child, like after every clone.
 */
static pid_t fork_into_group(int group)
{
	void  *tid = NULL, *robust = NULL;
	size_t len = 0;
	pid_t  pid;

	if (prctl(PR_GET_TID_ADDRESS, &tid) < 0 || syscall(SYS_get_robust_list, 0, &robust, &len) < 0)
		return -1;
	struct clone_args args = {
		.flags       = CLONE_INTO_CGROUP | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.child_tid   = (uint64_t)(uintptr_t)tid,
		.exit_signal = SIGCHLD,
		.cgroup      = (uint64_t)group,
	};
	pid = clone3(&args, sizeof args);
	if (pid == 0)
		syscall(SYS_set_robust_list, robust, len);
	return pid;
}

static pid_t fork_into_cell(const struct zygote_request *r)
{
	if (setns(r->fds[ZYGOTE_CELL], CLONE_NEWPID) < 0)
		return -1;
	return r->order.clones_into ? fork_into_group(r->fds[ZYGOTE_GROUPS + r->order.joins]) : fork();
}

static void fill(struct child_ctx *c, const struct zygote *z, const struct zygote_request *r)
{
	*c = (struct child_ctx){
		.order          = r->order.order,
		.init_id        = r->order.init_id,
		.program_uid    = r->order.program_id,
		.program_gid    = r->order.program_id,
		.landlock_abi   = z->landlock_abi,
		.workspace_exec = r->order.workspace_exec,
		.cpu_before_ns  = r->order.cpu_before_ns,
		.join_len       = (int)r->order.joins,
		.report_fd      = r->fds[ZYGOTE_REPORT],
		.ready_fd       = { r->fds[ZYGOTE_GO], -1 },
		.cell_pidfd     = r->fds[ZYGOTE_CELL],
		.filter         = &z->filter,
		.stays          = true,
	};
	c->order.words.fd = r->fds[ZYGOTE_WORDS];
	memcpy(c->join_fd, r->fds + ZYGOTE_GROUPS, r->order.joins * sizeof *r->fds);
}

/* The step "signals" has made all of them what they are in a new process; a Python that has begun has some of its own. */
static void restore_dispositions(const struct zygote *z)
{
	for (int s = 1; s < NSIG; s++)
		if (z->kept[s].sa_handler != SIG_DFL)
			sigaction(s, &z->kept[s], NULL);
}

static void become_program(struct zygote *z, const struct zygote_request *r, struct zygote_run *ret)
{
	static struct child_ctx c; /* its lists are the program's argv and environment */

	prctl(PR_SET_NAME, z->name);
	fill(&c, z, r);
	child_become_program(&c);
	restore_dispositions(z);
	environ = c.lists.envp;
	*ret    = (struct zygote_run){ c.lists.argv, c.lists.envp, c.order.stdin_pipe };
}

bool zygote_fork(struct zygote *z, struct zygote_request *request, struct zygote_run *ret)
{
	pid_t pid;

	errno = EAGAIN;
	pid   = z->runs < ZYGOTE_RUNS_MAX ? fork_into_cell(request) : -1;
	if (pid == 0) {
		become_program(z, request, ret);
		return true;
	}
	say(request->fds[ZYGOTE_ANSWER], pid < 0 ? ZYGOTE_FAILED : ZYGOTE_FORKED, pid < 0 ? errno : 0);
	if (pid > 0) {
		z->run[z->runs].pid      = pid;
		z->run[z->runs++].answer = fcntl(request->fds[ZYGOTE_ANSWER], F_DUPFD_CLOEXEC, 0);
	}
	forget(request);
	return false;
}
