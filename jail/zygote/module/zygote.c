#define _GNU_SOURCE

#include "zygote.h"

#include "clock.h"
#include "sys.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * A fork that waits for its spec has time to rehearse, and so to copy the pages that a run writes to before its run
 * begins. In a stream of runs that would cost more than it saves: a fork that finds a run under way looks again later,
 * after IDLE_MS first, then after twice as long each time. A run that began BUSY_MS ago, and no other since, is no stream.
 */
enum { IDLE_MS = 4, IDLE_MS_MAX = 256, BUSY_MS = 250, LOOKS_UNCHARGED = 8 };

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

static int map_run_activity(struct zygote *z)
{
	void *page = mmap(NULL, sizeof *z->activity, PROT_READ, MAP_SHARED, ZYGOTE_FD_ACTIVITY, 0);

	z->activity = page;
	return page == MAP_FAILED ? -1 : close(ZYGOTE_FD_ACTIVITY);
}

int zygote_start_serving(struct zygote *z)
{
	z->server.requests = ZYGOTE_FD_REQUESTS;
	/*
	 * A thread that an import has left would be missing in each fork, and its locks would stay locked. The kernel
	 * refuses this call in a process with several threads, and otherwise does nothing.
	 */
	if (unshare(CLONE_THREAD) < 0 || chdir("/") < 0 || map_seccomp_filters(&z->server) < 0 ||
	    map_run_activity(z) < 0 || fork_server_open(&z->server) < 0)
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

static bool has_busy_runs(const struct zygote *z)
{
	int64_t newest = atomic_load_explicit(&z->activity->newest_ms, memory_order_relaxed);

	return newest != 0 && clock_ms(CLOCK_MONOTONIC) < (double)(newest + BUSY_MS);
}

bool zygote_has_time_to_rehearse(const struct zygote *z, const struct zygote_run *run)
{
	int looks = 0;

	for (int ms = IDLE_MS; run->child.fork.is_ahead && !child_wait_for_spec(&run->child, ms);
	     ms = ms < IDLE_MS_MAX ? 2 * ms : ms) {
		if (!has_busy_runs(z))
			return true;
		looks++;
	}
	if (looks >= LOOKS_UNCHARGED) /* their CPU time is not the program's */
		(void)zygote_report_confined(run);
	return false;
}

bool zygote_expects_guest_runner(const struct zygote *z)
{
	return atomic_load_explicit(&z->activity->has_guest_runner, memory_order_relaxed);
}

int zygote_receive_spec(struct zygote *z, struct zygote_run *run)
{
	struct child_ctx *c = &run->child;
	int               r = child_sys(munmap((void *)z->activity, sizeof *z->activity));

	z->activity = NULL;
	if (r == 0 && c->fork.is_ahead)
		r = child_read_spec_file(c);

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
