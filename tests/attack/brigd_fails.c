/*
 * brigd_fails.c - linked before brigd's own steps: one of them fails
 *
 *   BRIG_FAILS=list fails/brigd                      the steps, a line each
 *   BRIG_FAILS="STEP ERRNO HOW" fails/brig run ...   HOW: instead (it is not carried out) or after (it is, and fails then)
 *
 * The product knows nothing of this: here is a list of tables in the place of its own (jail/child/child_table.c), with copies of its rows.
 */
#define _GNU_SOURCE
#include "child.h"
#include "child_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS_MAX = 40 };

static char failing[64], how[16];
static int  error;

/* --- rows of the cell and of the program --- */

static int fail_instead(struct child_ctx *c)
{
	(void)c;
	return -error;
}

static int fail(struct child_ctx *c, child_step_fn *real)
{
	int r = real(c);

	c->detail = -1;
	return r < 0 ? r : -error;
}

/* TABLE:STEP, for some names are in more than one table. */
static bool is_failing(const char *table, const char *step)
{
	size_t n = strlen(table);

	return strncmp(failing, table, n) == 0 && failing[n] == ':' && strcmp(failing + n + 1, step) == 0;
}

static void copy(const char *table, struct child_step *to, const struct child_step *from, child_step_fn **real, child_step_fn *fail_after)
{
	for (size_t i = 0; from[i].name; i++) {
		if (i + 1 == ROWS_MAX)
			abort();
		to[i] = from[i];
		if (!is_failing(table, from[i].name))
			continue;
		*real     = from[i].run;
		to[i].run = strcmp(how, "after") == 0 ? fail_after : fail_instead;
	}
}

#define TABLES TABLE(cell) TABLE(enter) TABLE(program)
#define TABLE(table)                                               \
	static struct child_step table##_steps[ROWS_MAX];          \
	static child_step_fn    *real_##table;                     \
	static int               fail_##table(struct child_ctx *c) \
	{                                                          \
		return fail(c, real_##table);                      \
	}
TABLES
#undef TABLE

const struct child_step *const child_tables[] = {
	[CHILD_CELL] = cell_steps, [CHILD_PROGRAM] = program_steps, [CHILD_ENTER] = enter_steps, [CHILD_ZYGOTE] = child_zygote_steps,
};

static void list(void)
{
#define TABLE(table)                                           \
	for (size_t i = 0; child_##table##_steps[i].name; i++) \
		printf(#table ":%s\n", child_##table##_steps[i].name);
	TABLES
#undef TABLE
}

static void __attribute__((constructor)) prepare(void)
{
	const char *wanted = getenv("BRIG_FAILS");

	if (wanted && strcmp(wanted, "list") == 0) {
		list();
		fflush(stdout);
		_exit(0);
	}
	if (wanted && sscanf(wanted, "%63s %d %15s", failing, &error, how) != 3)
		abort();
#define TABLE(table) copy(#table, table##_steps, child_##table##_steps, &real_##table, fail_##table);
	TABLES
#undef TABLE
}
