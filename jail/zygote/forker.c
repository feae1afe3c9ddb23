#define _GNU_SOURCE
#include "forker.h"

#include "fd.h"
#include "privilege.h"
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* In the fork. */
static void become_program(const struct fork_request *r, const void *server)
{
	struct exec_lists lists;
	struct child_ctx  c;

	fork_server_fill_child(&c, &lists, server, r);
	child_become_program(&c); /* its last row execs */
	_exit(EXIT_FAILURE);
}

/* A forker that cannot change to the owner's id, or back, must not go on. */
static void fork_program_as_owner(const struct fork_server *s, struct fork_request *r, bool is_last)
{
	struct err e;

	if (privilege_set_userns_uid(r->params.owner_id, &e) < 0)
		_exit(EXIT_FAILURE);
	if (is_last)
		fork_server_run_last(r, become_program, s);
	else if (fork_server_fork(r) == 0)
		become_program(r, s);
	if (!is_last && privilege_restore_root_uid(&e) < 0)
		_exit(EXIT_FAILURE);
}

static _Noreturn void forker_main(struct fork_server *s, const struct forker *f)
{
	struct fork_request *r;
	struct child_ctx     none = { .detail = -1 };

	/* First: with copies of a launcher's sockets here, its cell and its server would not notice its end. */
	if (fd_close_all_but(&s->requests, 1) < 0)
		_exit(EXIT_FAILURE);
	prctl(PR_SET_NAME, "brig-forker");
	if (f->is_oom_target)
		privilege_set_max_oom_score();
	if (child_set_fixed_rlimits(&none) < 0 || fork_server_open(s) < 0)
		_exit(EXIT_FAILURE);
	while (fork_server_await_request(s, &r)) {
		fork_program_as_owner(s, r, f->is_for_one);
		if (f->is_for_one)
			break;
	}
	_exit(EXIT_SUCCESS);
}

void forker_close(struct forker *f)
{
	fd_closep(&f->requests);
	fd_closep(&f->pidfd);
}

void forker_kill(struct forker *f)
{
	if (f->pidfd >= 0)
		pidfd_send_signal(f->pidfd, SIGKILL, NULL, 0);
	forker_close(f);
}

int forker_start(struct forker *f, struct err *e)
{
	int               pair[2];
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&f->pidfd, .exit_signal = SIGCHLD };
	pid_t             pid;

	if (f->requests >= 0)
		return 0;
	if (f->is_for_one && f->generation) /* the launcher no longer has the privilege that a second one needs */
		return err_set(e, ERR_SETUP, "set-up step fork-server: it ended before it had forked the program");
	forker_close(f); /* closes the descriptors of one that died */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "set-up step fork-server");
	pid = clone3(&args, sizeof args);
	if (pid == 0)
		forker_main(&(struct fork_server){ .requests = pair[1], .filter = *f->filter, .notifying = *f->notifying }, f);
	close(pair[1]);
	f->requests = pair[0];
	f->generation++;
	if (pid > 0)
		return 0;
	f->pidfd = -1;
	err_sys(e, "set-up step fork-server");
	forker_close(f);
	return -1;
}
