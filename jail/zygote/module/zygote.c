#define _GNU_SOURCE

#include "zygote.h"

#include "sys.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * A fork that gets no order for so long is not part of a stream of runs. It has time to rehearse, and so to copy the
 * pages that a run writes to before its run begins. Beside other runs a rehearsal would cost more than it saves.
 */
enum { IDLE_MS = 4 };

extern char **environ;

/* --- begin --- */

/* The file has the filter, followed by the same filter with notices. */
static int map_seccomp_filters(struct fork_server *s)
{
	off_t               len = lseek(ZYGOTE_FD_FILTER, 0, SEEK_END);
	struct sock_filter *both;
	unsigned short      half;

	if (len <= 0)
		return -1;
	both       = mmap(NULL, (size_t)len, PROT_READ, MAP_PRIVATE, ZYGOTE_FD_FILTER, 0);
	half       = (unsigned short)((size_t)len / sizeof *both / 2);
	s->filter  = (struct sock_fprog){ .len = half, .filter = both };
	s->notifying = (struct sock_fprog){ .len = half, .filter = both + half };
	return both == MAP_FAILED ? -1 : close(ZYGOTE_FD_FILTER);
}

int zygote_start_serving(struct zygote *z)
{
	z->server.requests = ZYGOTE_FD_REQUESTS;
	/*
	 * A thread that an import has left would be missing in each fork, and its locks would stay locked. The kernel
	 * refuses this call in a process with several threads, and otherwise does nothing.
	 */
	if (unshare(CLONE_THREAD) < 0 || chdir("/") < 0 || map_seccomp_filters(&z->server) < 0 ||
	    fork_server_open(&z->server) < 0)
		return -1;
	if (prctl(PR_GET_NAME, z->name) < 0 || prctl(PR_SET_NAME, "brig-zygote") < 0)
		return -1;
	return write(ZYGOTE_FD_READY, "r", 1) == 1 ? close(ZYGOTE_FD_READY) : -1;
}

/* --- forks --- */

bool zygote_fork(const struct zygote *z, struct fork_request *request, struct zygote_run *ret)
{
	if (fork_server_fork(request) != 0)
		return false;
	prctl(PR_SET_NAME, z->name);
	fork_server_fill_child(&ret->child, &ret->lists, &z->server, request);
	ret->child.fork.stays = true;
	child_become_program(&ret->child);
	return true;
}

bool zygote_report_confined(const struct zygote_run *run)
{
	int r = child_report_confined(&run->child);

	errno = -r;
	return r == 0;
}

bool zygote_is_spec_late(const struct zygote_run *run)
{
	return run->child.fork.is_ahead && !child_wait_for_spec(&run->child, IDLE_MS);
}

int zygote_receive_spec(struct zygote_run *run)
{
	struct child_ctx *c = &run->child;
	int               r = c->fork.is_ahead ? child_read_spec_file(c) : 0;

	if (r == 0 && c->fork.is_ahead)
		child_enter_workdir(c);
	if (r == 0 && c->fork.spec.executes)
		child_exec_ordered_command(c);
	if (r == 0)
		r = child_finish_streams(c);
	errno         = -r;
	environ       = c->fork.lists->envp;
	run->argv     = c->fork.lists->argv;
	run->envp     = c->fork.lists->envp;
	run->env_len    = r < 0 || !c->fork.spec.exec_args.envc
				  ? 0
				  : (size_t)(c->fork.lists->path[0] + c->fork.spec.exec_args.len - c->fork.lists->envp[0]);
	run->code     = c->fork.code;
	run->code_len   = c->fork.spec.code_len;
	run->stdin_pipe = c->fork.spec.stdin_pipe;
	return r < 0 ? -1 : 0;
}
