#define _GNU_SOURCE
#include "probe_kit.h"

#include "child_wait.h"
#include "clock.h"
#include "fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

const struct probe_row probe_rows[] = {
#define PROBE(name, need, run, since, config, purpose) { name, NEED_##need, probe_##run, since, config, purpose },
#include "probe.def"
#undef PROBE
};
const size_t probe_rows_len = ARRAY_LEN(probe_rows);

unsigned probe_deadline_ms(const struct probe_row *row)
{
	return row->run == probe_program ? 2 * PROBE_DEADLINE_MS : PROBE_DEADLINE_MS;
}

static _Noreturn void run_probe_in_child(const struct probe_row *row, const struct surroundings *at, int report)
{
	struct probe p = { .row = row, .at = at };
	ssize_t      n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!lifeline_open(&p) || !row->run(&p))
		p.finding.result = RESULT_MISSING;
	/* Smaller than PIPE_BUF: written as a whole or not at all. */
	n = write(report, &p.finding, sizeof p.finding);
	_exit(n == sizeof p.finding ? 0 : 1);
}

enum answer { ANSWER_CAME, ANSWER_NONE, ANSWER_LATE };

static enum answer await_finding(int report, unsigned deadline_ms, struct finding *ret)
{
	double         end = clock_ms(CLOCK_MONOTONIC) + deadline_ms;
	struct pollfd  ready = { .fd = report, .events = POLLIN };
	struct finding got;
	int            r;

	do {
		double left = end - clock_ms(CLOCK_MONOTONIC);

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
 * Kills and reaps all that the probe has started, which is in its process group. Orphans are children of this process,
 * a subreaper. Returns the wait status of the probe.
 */
static int kill_probe_group(pid_t child)
{
	int status;

	kill(-child, SIGKILL);
	status = child_wait(child);
	while (waitpid(-child, NULL, 0) > 0 || errno == EINTR)
		errno = 0;
	return status;
}

static void finding_set_death(int status, const struct surroundings *at, struct finding *f)
{
	*f = (struct finding){ .result = RESULT_MISSING };
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
		f->by = REFUSER_FILTER;
		snprintf(f->cause, sizeof f->cause, "the probe was killed by SIGSYS (%s)", refuser_text(REFUSER_FILTER));
		refusal_print_advice(&(struct refusal){ .errnum = 0 }, REFUSER_FILTER, at, f->fix, sizeof f->fix);
	} else if (WIFSIGNALED(status)) {
		snprintf(f->cause, sizeof f->cause, "the probe was killed by SIG%s", sigabbrev_np(WTERMSIG(status)));
	} else {
		snprintf(f->cause, sizeof f->cause, "the probe ended with status %d and no result", WEXITSTATUS(status));
	}
}

static void finding_set_start_failure(const char *what, struct finding *f)
{
	*f = (struct finding){ .result = RESULT_MISSING, .errnum = errno };
	snprintf(f->cause, sizeof f->cause, "%s: %s", what, strerror(f->errnum));
	snprintf(f->fix, sizeof f->fix, "raise ulimit -u and -n, or the limits of brig's control group");
}

static void run_probe_forked(const struct probe_row *row, const struct surroundings *at, unsigned deadline_ms, struct finding *ret)
{
	int         ends[2], status;
	pid_t       child;
	enum answer answer;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return finding_set_start_failure("pipe", ret);
	scoped_fd from = ends[0], to = ends[1];

	child = fork();
	if (child < 0)
		return finding_set_start_failure("fork", ret);
	setpgid(child, child); /* in parent and child, so that the group exists before either goes on */
	if (child == 0)
		run_probe_in_child(row, at, to);
	fd_closep(&to);
	answer = await_finding(from, deadline_ms, ret);
	if (answer == ANSWER_NONE) /* wait until it has ended, or kill_probe_group() would see our SIGKILL as the cause */
		while (waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
	status = kill_probe_group(child);
	if (answer == ANSWER_NONE)
		finding_set_death(status, at, ret);
	if (answer == ANSWER_LATE) {
		*ret = (struct finding){ .result = RESULT_MISSING, .errnum = ETIMEDOUT };
		snprintf(ret->cause, sizeof ret->cause, "timed out after %u ms", deadline_ms);
		snprintf(ret->fix, sizeof ret->fix, "run brig doctor again; if it stays, dmesg shows what the kernel waits for");
	}
	if (answer != ANSWER_CAME)
		remove_leftover_groups(at);
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
	run_probe_forked(row, at, deadline_ms, ret);
	if (ret->result != RESULT_OK && !ret->fix[0])
		snprintf(ret->fix, sizeof ret->fix, "none known: please report it with the output of brig doctor --json");
	ret->result = result_degrade_by_need(ret->result, row->need, at->is_root || at->is_monitor);
	sigprocmask(SIG_SETMASK, &before, NULL);
}
