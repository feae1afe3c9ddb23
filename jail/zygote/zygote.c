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
#include <sys/wait.h>
#include <time.h>

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

/* Of their ends only: a program that is stopped and goes on all the time would have us hear of it each time. */
static int watch_children(struct zygote *z)
{
	const struct sigaction ends = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };
	sigset_t               set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	if (sigaction(SIGCHLD, &ends, NULL) < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
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

/* Who else runs, and under which number of the host's, is nothing for a fork to read. */
static int make_cells(struct zygote *z)
{
	size_t len = ZYGOTE_CELLS_MAX * sizeof *z->cell;

	z->cell = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return z->cell == MAP_FAILED ? -1 : madvise(z->cell, len, MADV_WIPEONFORK);
}

int zygote_open(struct zygote *z)
{
	if (check_threads() < 0 || chdir("/") < 0)
		return -1;
	if (map_filters(z) < 0 || make_cells(z) < 0 || watch_children(z) < 0 || listen_to_own(z) < 0)
		return -1;
	keep_dispositions(z);
	z->landlock_abi = (unsigned)landlock_abi();
	if (prctl(PR_GET_NAME, z->name) < 0 || prctl(PR_SET_NAME, "brig-zygote") < 0)
		return -1;
	return write(ZYGOTE_FD_READY, "r", 1) == 1 ? close(ZYGOTE_FD_READY) : -1;
}

/* --- cells, and ends --- */

/* False when it was not heard; a launcher that is gone needs no answer. */
static bool say(int answer, enum zygote_kind kind, int status)
{
	struct zygote_word word = { .kind = kind, .status = status };

	return packet_send(answer, &word, sizeof word, NULL, 0) == 0;
}

static void forget(struct zygote_request *r)
{
	while (r->n)
		close(r->fds[--r->n]);
	free(r);
}

/* The files are the launcher's as well: closing ours would not make epoll forget them. */
static struct zygote_request *stop_listening(struct zygote *z, struct zygote_cell *c)
{
	struct zygote_request *r = c->request;

	epoll_ctl(z->epoll, EPOLL_CTL_DEL, r->fds[ZYGOTE_HANDED + HANDED_ORDERS], NULL);
	epoll_ctl(z->epoll, EPOLL_CTL_DEL, r->fds[ZYGOTE_ANSWER], NULL);
	c->request = NULL;
	return r;
}

static void drop(struct zygote *z, size_t i)
{
	if (z->cell[i].request)
		forget(stop_listening(z, &z->cell[i]));
	close(z->cell[i].answer);
	z->cell[i] = z->cell[--z->cells];
}

static void tell_end(struct zygote *z, pid_t pid, int status)
{
	for (size_t i = 0; i < z->cells; i++)
		if (z->cell[i].pid == pid) {
			say(z->cell[i].answer, ZYGOTE_ENDED, status);
			drop(z, i);
			return;
		}
}

/* Those who wait go to the successor; those who have been forked go on, or are given up by who has no use for them. */
static void retire(struct zygote *z)
{
	z->is_last = true;
	epoll_ctl(z->epoll, EPOLL_CTL_DEL, ZYGOTE_FD_ORDERS, NULL);
	for (size_t i = z->cells; i-- > 0;) {
		say(z->cell[i].answer, ZYGOTE_RETIRES, 0);
		if (!z->cell[i].pid)
			drop(z, i);
	}
}

/* SIGTERM: a successor takes the orders from here on. */
static void hear_signals(struct zygote *z)
{
	struct signalfd_siginfo info;
	bool                    is_over = false;
	int                     status;
	pid_t                   pid;

	while (read(z->signals, &info, sizeof info) > 0)
		is_over |= info.ssi_signo == SIGTERM;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		tell_end(z, pid, status);
	if (is_over && !z->is_last)
		retire(z);
}

/* A launcher has less power than we, and lends none of ours to a program: no root in it, whatever it asks. */
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

static struct zygote_cell *enter(struct zygote *z, const struct zygote_request *r)
{
	struct zygote_cell *c = z->cells < ZYGOTE_CELLS_MAX ? &z->cell[z->cells] : NULL;

	errno = EAGAIN;
	if (!c)
		return NULL;
	*c = (struct zygote_cell){ .answer = fcntl(r->fds[ZYGOTE_ANSWER], F_DUPFD_CLOEXEC, 0) };
	if (c->answer < 0)
		return NULL;
	z->cells++;
	return c;
}

/* Its order wakes us, and so does the end of its launcher. */
static int listen_to(struct zygote *z, struct zygote_request *r)
{
	struct epoll_event order = { .events = EPOLLIN, .data.ptr = r }, end = { .events = 0, .data.ptr = r };

	return epoll_ctl(z->epoll, EPOLL_CTL_ADD, r->fds[ZYGOTE_HANDED + HANDED_ORDERS], &order) < 0 ||
	       epoll_ctl(z->epoll, EPOLL_CTL_ADD, r->fds[ZYGOTE_ANSWER], &end) < 0 ? -1 : 0;
}

/* One that is none is dropped: who sent it sees the end of its sockets. NULL: nothing to be done now. */
static struct zygote_request *keep(struct zygote *z, struct zygote_request *r)
{
	struct zygote_cell *c;

	if (r->order.ahead)
		return r;
	c = enter(z, r);
	if (!c) {
		say(r->fds[ZYGOTE_ANSWER], ZYGOTE_FAILED, errno);
		forget(r);
		return NULL;
	}
	c->request = r;
	if (listen_to(z, r) == 0) {
		say(c->answer, ZYGOTE_WAITS, 0);
		return NULL;
	}
	say(c->answer, ZYGOTE_FAILED, errno);
	drop(z, z->cells - 1);
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

static size_t find(const struct zygote *z, const struct zygote_request *r)
{
	size_t i = 0;

	while (i < z->cells && z->cell[i].request != r)
		i++;
	return i;
}

/* Its order is there, or its launcher is gone. NULL: nothing to be forked. */
static struct zygote_request *hear_cell(struct zygote *z, struct zygote_request *r, uint32_t events)
{
	size_t i = find(z, r);

	if (i == z->cells) /* of the same turn: its end, and it was dropped */
		return NULL;
	if (events & (EPOLLHUP | EPOLLERR)) {
		drop(z, i);
		return NULL;
	}
	stop_listening(z, &z->cell[i]);
	drop(z, i);
	return r;
}

/* One at a time: what is forked, or dropped, may be among the others. */
bool zygote_await(struct zygote *z, struct zygote_request **ret)
{
	*ret = NULL;
	while (!*ret && (!z->is_last || z->cells)) {
		struct epoll_event e;

		if (epoll_wait(z->epoll, &e, 1, -1) < 1)
			continue;
		if (e.data.ptr == &z->signals)
			hear_signals(z);
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
	for (int tries = 0; (pid = clone3(&args, sizeof args)) < 0 && errno == EACCES && tries < LENT_MS; tries++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL); /* as launchers do (group.h) */
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
 * The word comes first: were we killed between a fork and its word, the launcher would ask another zygote for a cell in
 * which a process takes the order already. Who cannot be told gets no fork.
 */
static pid_t fork_for(struct zygote *z, const struct zygote_request *r)
{
	struct zygote_cell *c   = enter(z, r);
	pid_t               pid = -1;

	if (c && say(c->answer, ZYGOTE_FORKS, 0))
		pid = fork_into_cell(r);
	if (pid > 0)
		c->pid = pid;
	if (pid < 0)
		say(r->fds[ZYGOTE_ANSWER], ZYGOTE_FAILED, errno);
	if (pid < 0 && c)
		drop(z, z->cells - 1);
	return pid;
}

bool zygote_fork(struct zygote *z, struct zygote_request *request, struct zygote_run *ret)
{
	if (fork_for(z, request) == 0) {
		become_program(z, request, ret);
		return true;
	}
	forget(request);
	return false;
}

int zygote_take_order(struct zygote_run *run)
{
	struct child_ctx *c = &run->child;
	int               r = child_say_stands(c);

	if (r == 0 && c->is_ahead)
		r = child_take_letter(c);
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
