#include "verdict.h"

#include "clock.h"
#include "runner_send.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void add_limit_hit(struct run_result *end, enum limit_id limit, int64_t value, int64_t peak, int64_t times)
{
	if (end->hits < ARRAY_LEN(end->hit))
		end->hit[end->hits++] = (struct run_hit){ limit, value, peak, times };
}

/* tmpfs does not count what it refused: that it was full when the program ended is all that can be known. */
static void add_full_mount_hits(struct runner *w)
{
	const struct limits *l    = w->spec.limits;
	uint64_t             full = 0, inodes = 0;

	for (uint32_t i = 0; i < w->program.mounts_read && i < CELL_MOUNTS; i++) {
		if (w->program.free_bytes[i] == 0)
			full |= 1u << i;
		inodes |= w->program.free_inodes[i] == 0;
	}
	if (full & 3)
		add_limit_hit(&w->end, LIMIT_tmp_bytes, (int64_t)l->tmp_bytes, (int64_t)l->tmp_bytes, -1);
	if (full & 4)
		add_limit_hit(&w->end, LIMIT_workspace_bytes, (int64_t)l->workspace_bytes,
			      (int64_t)l->workspace_bytes, -1);
	if (inodes)
		add_limit_hit(&w->end, LIMIT_inodes, (int64_t)l->inodes, (int64_t)l->inodes, -1);
}

static void fill_usage_figures(struct runner *w)
{
	struct run_figures *f = &w->end.figures;
	struct cg_usage     u;

	cg_read_usage(&w->cell.group, &u);
	f->cpu_ms            = runner_program_cpu_ms(w, u.cpu_ns);
	f->memory_peak_bytes = u.memory_peak;
	f->pids_peak         = u.pids_peak > 0 ? u.pids_peak - 1 : u.pids_peak; /* without PID 1, which is brig-init */
	f->io_read_bytes     = u.io_read;
	f->io_write_bytes    = u.io_write;
	if (u.pids_refused > 0)
		add_limit_hit(&w->end, LIMIT_pids, (int64_t)w->spec.limits->pids, f->pids_peak, u.pids_refused);
	w->oom |= u.oom_kills > 0;
}

/*
 * Either PID 1 was killed from outside, and the program with it: nothing in the cell can kill it, because PID 1 has
 * an id of its own. Or PID 1 has ended by itself.
 */
static void find_reason_of_init_death(struct runner *w)
{
	siginfo_t init; /* not reaped yet */

	w->end.reason      = w->oom ? EXIT_oom : EXIT_signaled;
	w->end.wait_status = SIGKILL;
	if (!w->clock.started && !w->oom) {
		w->end.reason      = EXIT_setup_failed;
		w->end.wait_status = -1;
		err_set(&w->end.why, ERR_SETUP,
			"set-up step fork-program: PID 1 of the cell died before there was a program");
		return;
	}
	if (w->oom || (waitid(P_PID, (id_t)w->cell.pid, &init, WEXITED | WNOWAIT) == 0 && init.si_code == CLD_KILLED))
		return;
	w->end.reason = EXIT_cancelled;
	err_set(&w->end.why, ERR_BROKEN, "the run was cut short: PID 1 of its cell ended before the program did");
}

/*
 * With version 1 a process that needs memory waits until this process has acted (cg_oom). The kernel cannot wait when
 * it touches a page itself, for rseq or a signal frame, often right after a fork: then the process gets SIGSEGV, and
 * no event comes. Its group is full to the last page. So is the group of a program that has read large files: if that
 * crashes for another reason, it is reported as oom, too.
 */
static bool crashed_for_memory(const struct runner *w)
{
	return WTERMSIG(w->program.status) == SIGSEGV && w->cell.oom.events == POLLIN &&
	       w->end.figures.memory_peak_bytes >= (int64_t)w->spec.limits->memory_bytes;
}

/* What ended the program, if this process did not: from what the kernel reports alone. */
static void find_end_reason(struct runner *w)
{
	bool killed;

	if (runner_is_ending(w))
		return;
	if (w->program_state == PROGRAM_NOT_ENDED) {
		find_reason_of_init_death(w);
		return;
	}
	w->end.wait_status = w->program.status;
	killed             = WIFSIGNALED(w->program.status);
	w->oom |= killed && crashed_for_memory(w);
	if (w->oom)
		w->end.reason = EXIT_oom;
	else if (killed && w->end.figures.cpu_ms >= (double)w->spec.limits->cpu_ms)
		w->end.reason = EXIT_timeout_cpu; /* RLIMIT_CPU was faster than the supervisor's clock */
	else
		w->end.reason = killed ? EXIT_signaled : EXIT_exited;
}

void verdict_fill_result(struct runner *w)
{
	if (w->clock.started) {
		w->end.figures.wall_ms = clock_ms(CLOCK_MONOTONIC) - w->clock.started;
		w->end.started_at      = w->started_at;
		w->end.refused_known = w->cell.is_noticed;
		runner_fill_layers(w, &w->end);
		fill_usage_figures(w);
		add_full_mount_hits(w);
	}
	find_end_reason(w);
	if (w->end.reason == EXIT_oom && w->end.why.kind == ERR_NONE && !runner_reached_memory_limit(w))
		err_set(&w->end.why, ERR_LIMIT,
			"a control group above the run was full: the service or the host is short of memory, "
			"the run had not reached its limit");
	if (w->end.reason != EXIT_exited && w->end.reason != EXIT_signaled)
		w->end.wait_status = -1;
	if (!runner_is_ending(w)) /* the kernel ended it: with version 2 it kills for memory without asking */
		runner_send_limit_of_reason(w, w->end.reason);
	memcpy(w->end.rootfs_digest, w->cell.rootfs.digest, sizeof w->end.rootfs_digest); /* without a program, too */
	w->end.warm = w->clock.started > 0 && w->is_warm_spec;
}
