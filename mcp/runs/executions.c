#define _GNU_SOURCE
#include "executions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* --- what is kept --- */

static size_t size_of(const struct execution *x)
{
	return sizeof *x + x->out.stream.room + x->err.stream.room + x->report.stream.room + x->program_report_bytes + x->input_len;
}

static bool is_kept(const struct execution *x)
{
	return *x->handle && x->state == EXECUTION_ENDED && TAILQ_EMPTY(&x->waiters);
}

/* Counts what is kept, and returns the one that ended first. */
static struct execution *look_through(const struct executions *all, size_t *n, uint64_t *bytes)
{
	struct execution *x, *oldest = NULL;

	*n     = 0;
	*bytes = 0;
	TAILQ_FOREACH(x, &all->all, link) {
		if (!is_kept(x))
			continue;
		++*n;
		*bytes += size_of(x);
		if (!oldest || x->ended_ms < oldest->ended_ms)
			oldest = x;
	}
	return oldest;
}

static void forget_stale(void *owner)
{
	struct executions *all = owner;
	struct execution  *oldest;
	uint64_t           bytes;
	size_t             n;

	while ((oldest = look_through(all, &n, &bytes))) {
		int64_t age = loop_now_ms() - oldest->ended_ms;

		if (n <= KEPT_MAX && bytes <= KEPT_BYTES && age < KEPT_MS) {
			loop_timer_set(&all->mcp->loop, &all->stale, KEPT_MS - age);
			return;
		}
		executions_drop(oldest);
	}
	loop_timer_clear(&all->mcp->loop, &all->stale);
}

/* An waiter that comes and leaves at once makes execution_leave() free or cancel it. */
void executions_drop(struct execution *x)
{
	struct waiter last = { 0 };

	execution_add_waiter(x, &last);
	*x->handle = 0;
	execution_leave(x, &last);
}

/* A random UUID, for a run that has no id yet. */
static void make_handle(char *ret, size_t len)
{
	unsigned char b[16] = { 0 };

	(void)!getrandom(b, sizeof b, 0);
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 4122, version 4 */
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	snprintf(ret, len, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7],
		 b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

bool executions_keep(struct execution *x)
{
	size_t            n = 0;
	struct execution *other;

	TAILQ_FOREACH(other, &x->mcp->executions->all, link)
		n += *other->handle && other->state != EXECUTION_ENDED;
	if (*x->handle)
		return true;
	if (n >= KEPT_RUNNING_MAX)
		return false;
	if (*x->id)
		memcpy(x->handle, x->id, sizeof x->handle);
	else
		make_handle(x->handle, sizeof x->handle);
	return true;
}

struct execution *executions_find(struct mcp *m, const char *principal, const char *handle)
{
	struct execution *x;

	TAILQ_FOREACH(x, &m->executions->all, link)
		if (*handle && (*x->handle || x->state == EXECUTION_RUNS) && strcmp(x->principal, principal) == 0 && (strcmp(x->handle, handle) == 0 || strcmp(x->id, handle) == 0))
			return x;
	return NULL;
}

/* --- all of them --- */

struct executions *executions_create(struct mcp *m)
{
	struct executions *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->mcp   = m;
	all->stale = (struct loop_timer){ .due = forget_stale, .owner = all };
	TAILQ_INIT(&all->all);
	return all;
}

void executions_destroy(struct executions *all)
{
	struct execution *x;

	if (!all)
		return;
	while ((x = TAILQ_FIRST(&all->all))) {
		x->state = EXECUTION_ENDED; /* brigd ends it with the connection */
		TAILQ_INIT(&x->waiters);
		executions_drop(x);
	}
	loop_timer_clear(&all->mcp->loop, &all->stale);
	free(all);
}
