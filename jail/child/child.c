#define _GNU_SOURCE
#include "child.h"
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { CHILD_EXIT_SETUP = 125 };

static const struct child_step *const tables[] = {
	[CHILD_CELL]    = child_cell_steps,
	[CHILD_PROGRAM] = child_program_steps,
	[CHILD_ENTER]   = child_enter_steps,
	[CHILD_ZYGOTE]  = child_zygote_steps,
};

int child_sys(long r)
{
	return r < 0 ? -errno : 0;
}

int64_t child_cpu_ns(pid_t pid)
{
	enum { CPU_OF_PROCESS = 2 }; /* as clock_getcpuclockid() makes it, which asks for more than we need */
	struct timespec t;

	if (syscall(SYS_clock_gettime, (clockid_t)(~(unsigned)pid << 3 | CPU_OF_PROCESS), &t) < 0)
		return 0;
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int child_say(const struct child_ctx *c, enum child_word word, const int *fds, size_t n)
{
	struct child_report report;

	memset(&report, 0, sizeof report); /* padding too: it leaves this process */
	report.word   = word;
	report.detail = word == CHILD_EXECS ? CHILD_DETAIL_EXECS : 0;
	report.cpu_ns = child_cpu_ns(0) + child_cpu_ns(1) - c->cpu_before_ns;
	report.cpu_before_ns = c->cpu_before_ns;
	return packet_send(c->report_fd, &report, sizeof report, fds, n);
}

static void say_failed(const struct child_ctx *c, enum child_table table, unsigned step, int errnum)
{
	struct child_report report;

	memset(&report, 0, sizeof report);
	report.word   = CHILD_FAILED;
	report.table  = table;
	report.step   = step;
	report.detail = c->detail;
	report.errnum = errnum;
	(void)!write(c->report_fd, &report, sizeof report); /* under a program's filter, too */
}

void child_fail(const struct child_ctx *c, const char *name, int errnum)
{
	unsigned step = 0;

	while (strcmp(child_program_steps[step].name, name) != 0)
		step++;
	say_failed(c, CHILD_PROGRAM, step, errnum);
	_exit(CHILD_EXIT_SETUP);
}

static void run_table(struct child_ctx *c, enum child_table table)
{
	for (unsigned i = 0; tables[table][i].name; i++) {
		int r;

		c->detail = -1;
		r         = tables[table][i].run(c);
		if (r < 0) {
			say_failed(c, table, i, -r);
			_exit(CHILD_EXIT_SETUP);
		}
	}
}

_Noreturn void child_run_cell(struct child_ctx *c)
{
	run_table(c, CHILD_CELL);
	_exit(CHILD_EXIT_SETUP); /* the last row execs */
}

void child_become_program(struct child_ctx *c)
{
	run_table(c, CHILD_ENTER);
	run_table(c, CHILD_PROGRAM);
}

int child_build_zygote(struct child_ctx *c, unsigned *step)
{
	int r = 0;

	for (*step = 0; r == 0 && child_zygote_steps[*step].name; ++*step)
		r = child_zygote_steps[*step].run(c);
	*step -= r < 0;
	return r;
}

static unsigned table_len(enum child_table table)
{
	unsigned n = 0;

	while (tables[table][n].name)
		n++;
	return n;
}

const char *child_step_name(enum child_table table, unsigned step)
{
	return step < table_len(table) ? tables[table][step].name : NULL;
}

const char *child_step_reason(enum child_table table, unsigned step)
{
	return step < table_len(table) ? tables[table][step].reason : NULL;
}

static bool is_exec(const struct child_report *r)
{
	return r->table == CHILD_PROGRAM && strcmp(child_step_name(r->table, r->step), "exec") == 0;
}

/* EAGAIN, execve(2): RLIMIT_NPROC is exceeded. */
int child_exec_errno(const struct child_report *r)
{
	return is_exec(r) && r->errnum != EAGAIN ? r->errnum : 0;
}

int child_explain(const struct child_report *r, const struct child_ctx *c, struct err *e)
{
	const char *name = r->table <= CHILD_ENTER ? child_step_name(r->table, r->step) : NULL;

	if (!name)
		return err_set(e, ERR_BROKEN, "garbled report from the cell's set-up");
	errno = r->errnum;
	if (child_exec_errno(r))
		return err_sys(e, "%s (in the rootfs)", "the program");
	if (is_exec(r))
		return err_sys(e, "set-up step exec: the caller's limit of processes (ulimit -u) is too small");
	if (r->table == CHILD_CELL && r->detail >= 0 && (size_t)r->detail < c->mounts->n)
		return err_sys(e, "set-up step %s: /%s", name, c->mounts->step[r->detail].to);
	return err_sys(e, "set-up step %s", name);
}
