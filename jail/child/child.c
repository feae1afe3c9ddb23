#include "child.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void run_step_table(struct child_ctx *c, enum child_table table)
{
	for (unsigned i = 0; child_tables[table][i].name; i++) {
		int r;

		c->detail = -1;
		r         = child_tables[table][i].run(c);
		if (r < 0)
			child_report_failure_and_exit(c, table, i, -r);
	}
}

_Noreturn void child_build_cell_and_exec_init(struct child_ctx *c)
{
	run_step_table(c, CHILD_CELL);
	_exit(CHILD_EXIT_SETUP); /* the last row execs */
}

void child_become_program(struct child_ctx *c)
{
	run_step_table(c, CHILD_ENTER);
	run_step_table(c, CHILD_PROGRAM);
}

int child_run_zygote_steps(struct child_ctx *c, unsigned *step)
{
	int r = 0;

	for (*step = 0; r == 0 && child_tables[CHILD_ZYGOTE][*step].name; ++*step)
		r = child_tables[CHILD_ZYGOTE][*step].run(c);
	*step -= r < 0;
	return r;
}

/* The last row, which has no name, if the table has no such step. */
static const struct child_step *find_child_step(enum child_table table, unsigned step)
{
	const struct child_step *row = child_tables[table];

	while (row->name && step-- > 0)
		row++;
	return row;
}

const char *child_step_name(enum child_table table, unsigned step)
{
	return find_child_step(table, step)->name;
}

const char *child_step_reason(enum child_table table, unsigned step)
{
	return find_child_step(table, step)->reason;
}

static bool is_exec_step(const struct child_report *r)
{
	const char *name = r->table == CHILD_PROGRAM ? child_step_name(r->table, r->step) : NULL; /* NULL: garbled */

	return name && strcmp(name, "exec") == 0;
}

/* EAGAIN is not about the file: RLIMIT_NPROC is exceeded (execve(2)). */
int child_exec_errno(const struct child_report *r)
{
	return is_exec_step(r) && r->errnum != EAGAIN ? r->errnum : 0;
}

int child_report_to_err(const struct child_report *r, const struct child_ctx *c, struct err *e)
{
	const char *name = r->table <= CHILD_ENTER ? child_step_name(r->table, r->step) : NULL;

	if (!name)
		return err_set(e, ERR_BROKEN, "garbled report from the cell's set-up");
	errno = r->errnum;
	if (child_exec_errno(r))
		return err_sys(e, "%s (in the rootfs)", "the program");
	if (is_exec_step(r))
		return err_sys(e, "set-up step exec: the caller's limit of processes (ulimit -u) is too small");
	/* The caller's choice, and no flaw of the host. */
	if (strcmp(name, "workdir") == 0 && r->detail == CHILD_DETAIL_ASKED)
		return err_set(e, ERR_BAD_SPEC, "working directory: %s (in the jail)", strerror(errno));
	if (r->table == CHILD_CELL && r->detail >= 0 && (size_t)r->detail < c->build.mounts->n)
		return err_sys(e, "set-up step %s: /%s", name, c->build.mounts->step[r->detail].to);
	return err_sys(e, "set-up step %s", name);
}
