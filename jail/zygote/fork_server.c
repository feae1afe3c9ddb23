#define _GNU_SOURCE
#include "fork_server.h"

#include "clone.h"
#include "packet.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- begin --- */

/* A fork must not learn of other cells: it finds zeros in s->waiting. */
int fork_server_open(struct fork_server *s)
{
	struct epoll_event signals  = { .events = EPOLLIN, .data.ptr = &s->signals };
	struct epoll_event requests = { .events = EPOLLIN, .data.ptr = &s->epoll };
	size_t             len      = FORK_SERVER_CELLS_MAX * sizeof(void *);
	sigset_t           set;

	s->waiting = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->waiting == MAP_FAILED || madvise(s->waiting, len, MADV_WIPEONFORK) < 0)
		return -1;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -1;
	s->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	s->epoll   = epoll_create1(EPOLL_CLOEXEC);
	if (s->signals < 0 || s->epoll < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->signals, &signals) < 0)
		return -1;
	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->requests, &requests);
}

/* --- cells that wait --- */

/* False: the message could not be sent. Most callers ignore that: a supervisor that is gone needs no answer. */
static bool send_fork_answer(const struct fork_request *r, enum fork_message_kind kind, int value, const int *fd)
{
	struct fork_message message = { .kind = kind, .value = value };

	return packet_send(r->fds[FORK_ANSWER], &message, sizeof message, fd, fd ? 1 : 0) == 0;
}

/* Closes all but the first `stays`. They were received together, so most of their numbers are consecutive. */
static void close_request_fds(struct fork_request *r, size_t stays)
{
	while (r->n > stays) {
		size_t last = r->n - 1, first = last;

		while (first > stays && r->fds[first - 1] + 1 == r->fds[first])
			first--;
		/* An end left open here would keep end of file from the cell. */
		if (close_range((unsigned)r->fds[first], (unsigned)r->fds[last], 0) < 0)
			while (r->n > first)
				close(r->fds[--r->n]);
		r->n = first;
	}
}

static void free_fork_request(struct fork_request *r)
{
	close_request_fds(r, 0);
	free(r);
}

/* The supervisor has the same open files, so closing the descriptors here would not remove them from epoll. */
static void unwatch_fork_request(struct fork_server *s, size_t i)
{
	struct fork_request *r = s->waiting[i];

	epoll_ctl(s->epoll, EPOLL_CTL_DEL, r->fds[FORK_HANDED + HANDED_ORDERS], NULL);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, r->fds[FORK_ANSWER], NULL);
	s->waiting[i] = s->waiting[--s->n];
}

/* The supervisor registers the cells that wait with the successor. */
static void retire_fork_server(struct fork_server *s)
{
	s->is_last = true;
	while (s->n) {
		struct fork_request *r = s->waiting[0];

		send_fork_answer(r, FORK_RETIRES, 0, NULL);
		unwatch_fork_request(s, 0);
		free_fork_request(r);
	}
}

/* No program is root in its cell, whatever is asked. */
static bool are_fork_ids_valid(const struct fork_params *o)
{
	return o->program_id != 0 && (o->init_id == 0 || o->init_id == o->program_id);
}

static bool is_fork_request_valid(const struct fork_request *r)
{
	const struct fork_params *o = &r->params;

	return are_fork_ids_valid(o) && o->joins <= CG_TREES_MAX && o->clones_into <= 1 && o->ahead <= 1 &&
	       o->has_code <= 1 && r->n == FORK_GROUPS + o->joins + o->clones_into;
}

/* The wait ends when the spec can be read, or when the answer socket hangs up because the cell is gone. */
static int watch_fork_request(struct fork_server *s, struct fork_request *r)
{
	struct epoll_event order = { .events = EPOLLIN, .data.ptr = r }, end = { .events = 0, .data.ptr = r };
	int                errnum;

	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, r->fds[FORK_HANDED + HANDED_ORDERS], &order) < 0)
		return -1;
	if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, r->fds[FORK_ANSWER], &end) == 0)
		return 0;
	errnum = errno;
	/* The supervisor has it open, too: a close would not remove it. */
	(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, r->fds[FORK_HANDED + HANDED_ORDERS], NULL);
	errno = errnum;
	return -1;
}

/* Takes the request over, unless its fork is to be made now: returns it then, else NULL. */
static struct fork_request *accept_fork_request(struct fork_server *s, struct fork_request *r)
{
	if (r->params.ahead)
		return r;
	errno = EAGAIN;
	if (s->n == FORK_SERVER_CELLS_MAX || watch_fork_request(s, r) < 0) {
		send_fork_answer(r, FORK_FAILED, errno, NULL);
		free_fork_request(r);
		return NULL;
	}
	s->waiting[s->n++] = r;
	send_fork_answer(r, FORK_WAITS, 0, NULL);
	return NULL;
}

static struct fork_request *receive_fork_request(struct fork_server *s)
{
	struct fork_request *r = calloc(1, sizeof *r);
	ssize_t              got;

	if (!r)
		return NULL;
	got = packet_receive(s->requests, &r->params, sizeof r->params, r->fds, FORK_REQUEST_FDS_MAX, &r->n);
	if (got == sizeof r->params && is_fork_request_valid(r))
		return accept_fork_request(s, r);
	if (got < 0)
		r->n = 0;
	free_fork_request(r);
	if (got == 0)
		retire_fork_server(s);
	return NULL;
}

/* The order has arrived, or the cell is gone. NULL: nothing to fork. */
static struct fork_request *handle_waiting_request_event(struct fork_server *s, struct fork_request *r, uint32_t events)
{
	size_t i = 0;

	while (i < s->n && s->waiting[i] != r)
		i++;
	if (i == s->n) /* it was dropped already */
		return NULL;
	unwatch_fork_request(s, i);
	if (!(events & (EPOLLHUP | EPOLLERR)))
		return r;
	free_fork_request(r);
	return NULL;
}

/* One event at a time: in a batch, a later one may be of a freed request. After SIGTERM a successor gets requests. */
bool fork_server_await_request(struct fork_server *s, struct fork_request **ret)
{
	*ret = NULL;
	while (!*ret && !s->is_last) {
		struct epoll_event e;

		if (epoll_wait(s->epoll, &e, 1, -1) < 1)
			continue;
		if (e.data.ptr == &s->signals)
			retire_fork_server(s);
		else if (e.data.ptr == &s->epoll)
			*ret = receive_fork_request(s);
		else
			*ret = handle_waiting_request_event(s, e.data.ptr, e.events);
	}
	return *ret;
}

/* --- forking --- */

/*
 * Makes a child of this process's parent, in the cell's pid namespace and control group, which glibc's fork() cannot
 * do. The kernel writes the child's thread id to where glibc keeps it, or it would be stale. The child sets its
 * robust list again, because a clone does not inherit it.
 */
static pid_t clone_sibling_into_cgroup(int group, int *pidfd)
{
	void  *tid = NULL, *robust = NULL;
	size_t len = 0;
	pid_t  pid;

	if (prctl(PR_GET_TID_ADDRESS, &tid) < 0 || syscall(SYS_get_robust_list, 0, &robust, &len) < 0)
		return -1;
	struct clone_args args = {
		.flags     = CLONE_PARENT | CLONE_PIDFD | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.pidfd     = (uint64_t)(uintptr_t)pidfd,
		.child_tid = (uint64_t)(uintptr_t)tid,
	};
	pid = clone_into_group(&args, group);
	if (pid == 0)
		syscall(SYS_set_robust_list, robust, len);
	return pid;
}

static int group_to_clone_into(const struct fork_request *r)
{
	return r->params.clones_into ? r->fds[FORK_GROUPS + r->params.joins] : -1;
}

/* Children of this process are in the cell's pid namespace from here on. */
static bool begin_fork(const struct fork_request *r)
{
	return send_fork_answer(r, FORK_FORKS, 0, NULL) && setns(r->fds[FORK_CELL], CLONE_NEWPID) == 0;
}

pid_t fork_server_fork(struct fork_request *r)
{
	int   pidfd = -1;
	pid_t pid   = -1;

	if (begin_fork(r))
		pid = clone_sibling_into_cgroup(group_to_clone_into(r), &pidfd);
	if (pid == 0)
		return 0;
	if (pid < 0) {
		send_fork_answer(r, FORK_FAILED, errno, NULL);
	} else {
		close_request_fds(r, FORK_ANSWER + 1); /* before FORKED: copies here must not delay its end of file */
		send_fork_answer(r, FORK_FORKED, pid, &pidfd);
		close(pidfd);
	}
	free_fork_request(r);
	return pid;
}

/* A fork that shares memory, and what it needs. pid: as its server sees it, written by the kernel before it runs. */
struct last_fork {
	struct fork_request *request;
	fork_server_run     *run;
	const void          *arg;
	pid_t                pid;
	int                  errnum; /* why nothing ran; 0 once FORKED was sent */
};

/*
 * It sends FORKED itself: the server waits until it execs, and what watches the cell may have to answer it before
 * (CHILD_LISTENER), which it does by the pidfd.
 */
static void run_last_fork(void *arg)
{
	struct last_fork *f     = arg;
	int               pidfd = pidfd_open(getpid(), 0);

	if (pidfd < 0 || !send_fork_answer(f->request, FORK_FORKED, f->pid, &pidfd)) {
		f->errnum = errno;
		_exit(EXIT_FAILURE);
	}
	f->errnum = 0;
	f->run(f->request, f->arg);
}

void fork_server_run_last(struct fork_request *r, fork_server_run *run, const void *arg)
{
	/* ECANCELED: it is killed before it can set that. */
	struct last_fork  f    = { .request = r, .run = run, .arg = arg, .errnum = ECANCELED };
	struct clone_args args = {
		.flags      = CLONE_PARENT | CLONE_PARENT_SETTID,
		.parent_tid = (uint64_t)(uintptr_t)&f.pid,
	};

	if (!begin_fork(r) || clone_sharing_memory(&args, group_to_clone_into(r), run_last_fork, &f) < 0)
		f.errnum = errno;
	if (f.errnum)
		send_fork_answer(r, FORK_FAILED, f.errnum, NULL);
	free_fork_request(r);
}

void fork_server_fill_child(struct child_ctx *c, struct exec_lists *lists, const struct fork_server *s,
		      const struct fork_request *r)
{
	memset(c, 0, sizeof *c);
	c->init_id       = r->params.init_id;
	c->cpu_before_ns = r->params.cpu_before_ns;
	c->join_len      = (int)r->params.joins;
	c->report_fd     = r->fds[FORK_REPORT];
	c->fork          = (struct child_fork){
		.program_id     = r->params.program_id,
		.landlock_abi   = r->params.landlock_abi,
		.workspace_exec = r->params.workspace_exec,
		.filter         = &s->filter,
		.notifying      = &s->notifying,
		.rlimits        = r->params.rlimits,
		.cell_pidfd     = r->fds[FORK_CELL],
		.is_ahead       = r->params.ahead,
		.has_code       = r->params.has_code,
		.lists          = lists,
	};
	memcpy(c->fork.handed_fd, r->fds + FORK_HANDED, HANDED_NULL * sizeof *r->fds);
	memcpy(c->join_fd, r->fds + FORK_GROUPS, r->params.joins * sizeof *r->fds);
}
