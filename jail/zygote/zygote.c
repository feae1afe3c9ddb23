#define _GNU_SOURCE

#include "zygote.h"

#include "packet.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <time.h>

/*
 * A fork that gets no order for so long is not one of a stream of runs: it has the time to make its first run fast, and so
 * a copy of the pages that a run writes to. Beside other runs that would cost more than it saves.
 */
enum { IDLE_MS = 4 };

extern char **environ;

/* --- begin --- */

/* One filter, followed by the same filter with notices. */
static int map_filters(struct zygote *z)
{
	off_t               len = lseek(ZYGOTE_FD_FILTER, 0, SEEK_END);
	struct sock_filter *both;
	unsigned short      half;

	if (len <= 0)
		return -1;
	both       = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, ZYGOTE_FD_FILTER, 0);
	half       = (unsigned short)((size_t)len / sizeof *both / 2);
	z->filter  = (struct sock_fprog){ .len = half, .filter = both };
	z->telling = (struct sock_fprog){ .len = half, .filter = both + half };
	return both == MAP_FAILED ? -1 : close(ZYGOTE_FD_FILTER);
}

static int watch_signals(struct zygote *z)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
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

static int listen_to_own(struct zygote *z)
{
	struct epoll_event signals = { .events = EPOLLIN, .data.ptr = &z->signals }, orders = { .events = EPOLLIN, .data.ptr = &z->epoll };

	z->epoll = epoll_create1(EPOLL_CLOEXEC);
	return z->epoll < 0 || epoll_ctl(z->epoll, EPOLL_CTL_ADD, z->signals, &signals) < 0 ||
	       epoll_ctl(z->epoll, EPOLL_CTL_ADD, ZYGOTE_FD_ORDERS, &orders) < 0 ? -1 : 0;
}

/* A fork must not read which other cells there are: it finds zeros. */
static int make_cells(struct zygote *z)
{
	size_t len = ZYGOTE_CELLS_MAX * sizeof(void *);

	z->waiting = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return z->waiting == MAP_FAILED ? -1 : madvise(z->waiting, len, MADV_WIPEONFORK);
}

int zygote_open(struct zygote *z)
{
	if (check_threads() < 0 || chdir("/") < 0)
		return -1;
	if (map_filters(z) < 0 || make_cells(z) < 0 || watch_signals(z) < 0 || listen_to_own(z) < 0)
		return -1;
	keep_dispositions(z);
	z->landlock_abi = (unsigned)landlock_abi();
	if (prctl(PR_GET_NAME, z->name) < 0 || prctl(PR_SET_NAME, "brig-zygote") < 0)
		return -1;
	return write(ZYGOTE_FD_READY, "r", 1) == 1 ? close(ZYGOTE_FD_READY) : -1;
}

/* --- cells that wait --- */

/* False when it was not heard; a supervisor that is gone needs no answer. */
static bool say(const struct zygote_request *r, enum zygote_kind kind, int value, const int *fd)
{
	struct zygote_word word = { .kind = kind, .value = value };

	return packet_send(r->fds[ZYGOTE_ANSWER], &word, sizeof word, fd, fd ? 1 : 0) == 0;
}

static void forget(struct zygote_request *r)
{
	while (r->n)
		close(r->fds[--r->n]);
	free(r);
}

/* The files are the supervisor's as well: closing ours would not make epoll forget them. */
static void stop_listening(struct zygote *z, size_t i)
{
	struct zygote_request *r = z->waiting[i];

	epoll_ctl(z->epoll, EPOLL_CTL_DEL, r->fds[ZYGOTE_HANDED + HANDED_ORDERS], NULL);
	epoll_ctl(z->epoll, EPOLL_CTL_DEL, r->fds[ZYGOTE_ANSWER], NULL);
	z->waiting[i] = z->waiting[--z->n];
}

/* Cells that wait are registered with the successor. */
static void retire(struct zygote *z)
{
	z->is_last = true;
	while (z->n) {
		struct zygote_request *r = z->waiting[0];

		say(r, ZYGOTE_RETIRES, 0, NULL);
		stop_listening(z, 0);
		forget(r);
	}
}

/* No program is root in its cell, whatever is asked. */
static bool are_ids(const struct zygote_order *o)
{
	return o->program_id != 0 && (o->init_id == 0 || o->init_id == o->program_id);
}

static bool is_sound(const struct zygote_request *r)
{
	const struct zygote_order *o = &r->order;

	return are_ids(o) && o->joins <= GROUP_TREES_MAX && o->clones_into <= 1 && o->ahead <= 1 &&
	       r->n == ZYGOTE_GROUPS + o->joins + o->clones_into;
}

/* The order of the cell ends the wait, and so does the end of the cell. */
static int listen_to(struct zygote *z, struct zygote_request *r)
{
	struct epoll_event order = { .events = EPOLLIN, .data.ptr = r }, end = { .events = 0, .data.ptr = r };

	return epoll_ctl(z->epoll, EPOLL_CTL_ADD, r->fds[ZYGOTE_HANDED + HANDED_ORDERS], &order) < 0 ||
	       epoll_ctl(z->epoll, EPOLL_CTL_ADD, r->fds[ZYGOTE_ANSWER], &end) < 0 ? -1 : 0;
}

/* NULL: nothing to be forked now. */
static struct zygote_request *keep(struct zygote *z, struct zygote_request *r)
{
	if (r->order.ahead)
		return r;
	errno = EAGAIN;
	if (z->n == ZYGOTE_CELLS_MAX || listen_to(z, r) < 0) {
		say(r, ZYGOTE_FAILED, errno, NULL);
		forget(r);
		return NULL;
	}
	z->waiting[z->n++] = r;
	say(r, ZYGOTE_WAITS, 0, NULL);
	return NULL;
}

static struct zygote_request *take_request(struct zygote *z)
{
	struct zygote_request *r = calloc(1, sizeof *r);
	ssize_t                got;

	if (!r)
		return NULL;
	got = packet_receive(ZYGOTE_FD_ORDERS, &r->order, sizeof r->order, r->fds, ZYGOTE_ORDER_FDS_MAX, &r->n);
	if (got == sizeof r->order && is_sound(r))
		return keep(z, r);
	if (got < 0)
		r->n = 0;
	forget(r);
	if (got == 0)
		retire(z);
	return NULL;
}

/* Its order is there, or its cell is gone. NULL: nothing to be forked. */
static struct zygote_request *hear_cell(struct zygote *z, struct zygote_request *r, uint32_t events)
{
	size_t i = 0;

	while (i < z->n && z->waiting[i] != r)
		i++;
	if (i == z->n) /* of the same turn: its end, and it was dropped */
		return NULL;
	stop_listening(z, i);
	if (!(events & (EPOLLHUP | EPOLLERR)))
		return r;
	forget(r);
	return NULL;
}

/* One at a time: what is forked, or dropped, may be among the others. SIGTERM: a successor takes the orders from here on. */
bool zygote_await(struct zygote *z, struct zygote_request **ret)
{
	*ret = NULL;
	while (!*ret && !z->is_last) {
		struct epoll_event e;

		if (epoll_wait(z->epoll, &e, 1, -1) < 1)
			continue;
		if (e.data.ptr == &z->signals)
			retire(z);
		else if (e.data.ptr == &z->epoll)
			*ret = take_request(z);
		else
			*ret = hear_cell(z, e.data.ptr, e.events);
	}
	return *ret;
}

/* --- forking --- */

enum { LENT_MS = 100 };

/*
 * Makes a child of this process's parent, in the cell's pid namespace and control group. glibc's fork() cannot; without it the thread id
 * that glibc keeps would be stale: the kernel writes it where glibc wants it. Its robust list is gone in the child, like after
 * every clone.
 */
static pid_t fork_beside(int group, int *pidfd)
{
	void  *tid = NULL, *robust = NULL;
	size_t len = 0;
	pid_t  pid;

	if (prctl(PR_GET_TID_ADDRESS, &tid) < 0 || syscall(SYS_get_robust_list, 0, &robust, &len) < 0)
		return -1;
	struct clone_args args = {
		.flags     = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | (group < 0 ? 0 : CLONE_INTO_CGROUP),
		.pidfd     = (uint64_t)(uintptr_t)pidfd,
		.child_tid = (uint64_t)(uintptr_t)tid,
		.cgroup    = group < 0 ? 0 : (uint64_t)group,
	};
	for (int tries = 0; (pid = clone3(&args, sizeof args)) < 0 && errno == EACCES && group >= 0 && tries < LENT_MS; tries++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* as for PID 1 (group.h) */
	if (pid == 0)
		syscall(SYS_set_robust_list, robust, len);
	return pid;
}

static pid_t fork_into_cell(const struct zygote_request *r, int *pidfd)
{
	if (setns(r->fds[ZYGOTE_CELL], CLONE_NEWPID) < 0)
		return -1;
	return fork_beside(r->order.clones_into ? r->fds[ZYGOTE_GROUPS + r->order.joins] : -1, pidfd);
}

static void fill(struct child_ctx *c, const struct zygote *z, const struct zygote_request *r)
{
	*c = (struct child_ctx){
		.order          = { .files = r->order.files, .cpu_s = r->order.cpu_s, .data = r->order.data, .processes = r->order.processes },
		.init_id        = r->order.init_id,
		.program_uid    = r->order.program_id,
		.program_gid    = r->order.program_id,
		.landlock_abi   = z->landlock_abi,
		.workspace_exec = r->order.workspace_exec,
		.cpu_before_ns  = r->order.cpu_before_ns,
		.join_len       = (int)r->order.joins,
		.report_fd      = r->fds[ZYGOTE_REPORT],
		.ready_fd       = { -1, -1 },
		.cell_pidfd     = r->fds[ZYGOTE_CELL],
		.filter         = &z->filter,
		.telling        = &z->telling,
		.stays          = true,
		.is_ahead       = r->order.ahead,
	};
	memcpy(c->handed_fd, r->fds + ZYGOTE_HANDED, HANDED_NULL * sizeof *r->fds);
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
	prctl(PR_SET_NAME, z->name);
	fill(&ret->child, z, r);
	child_become_program(&ret->child);
	restore_dispositions(z);
}

/*
 * FORKS is sent before the fork: if this zygote were killed between a fork and its word, another one would be asked to fork into
 * a cell in which a process already takes the order. Where FORKS cannot be sent, there is no fork.
 */
static pid_t fork_for(const struct zygote_request *r)
{
	int   pidfd = -1;
	pid_t pid   = say(r, ZYGOTE_FORKS, 0, NULL) ? fork_into_cell(r, &pidfd) : -1;

	if (pid < 0)
		say(r, ZYGOTE_FAILED, errno, NULL);
	if (pid > 0) {
		say(r, ZYGOTE_FORKED, pid, &pidfd);
		close(pidfd);
	}
	return pid;
}

bool zygote_fork(struct zygote *z, struct zygote_request *request, struct zygote_run *ret)
{
	if (fork_for(request) == 0) {
		become_program(z, request, ret);
		return true;
	}
	forget(request);
	return false;
}

bool zygote_stand(const struct zygote_run *run)
{
	int r = child_say_stands(&run->child);

	errno = -r;
	return r == 0;
}

bool zygote_is_idle(const struct zygote_run *run)
{
	return run->child.is_ahead && !child_has_order(&run->child, IDLE_MS);
}

int zygote_take_order(struct zygote_run *run)
{
	struct child_ctx *c = &run->child;
	int               r = c->is_ahead ? child_take_letter(c) : 0;

	if (r == 0)
		r = child_take_streams(c);
	errno         = -r;
	environ       = c->lists.envp;
	run->argv     = c->lists.argv;
	run->envp     = c->lists.envp;
	run->code     = c->code;
	run->code_len = c->letter.code_len;
	run->stdin_pipe = c->letter.stdin_pipe;
	return r < 0 ? -1 : 0;
}
