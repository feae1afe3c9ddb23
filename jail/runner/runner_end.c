/* runner_end.c - what ends a run: the first reason */
#define _GNU_SOURCE
#include "runner_parts.h"

#include "fd.h"
#include "runner_send.h"

#include <assert.h>
#include <sys/socket.h>

void runner_init(struct runner *w)
{
	*w = (struct runner){ .client = -1, .control = -1, .lease = -1, .streams = { -1, -1, -1, -1 }, .end = RUN_RESULT_NONE, .files = FILES_INIT };
	cell_init(&w->cell);
}

void runner_close_fds(struct runner *w)
{
	fd_closep(&w->client);
	fd_closep(&w->control);
	fd_closep(&w->lease);
	files_close(&w->files);
	for (size_t i = 0; i < ARRAY_LEN(w->streams); i++)
		fd_closep(&w->streams[i]);
}

/* At its limit a run has less than an eighth left: version 2 has a mark below it, and a huge page may not fit. */
bool runner_reached_memory_limit(const struct runner *w)
{
	struct cg_usage u;

	cg_read_usage(&w->cell.group, &u);
	return u.memory_peak < 0 || (uint64_t)u.memory_peak >= w->spec.limits->memory_bytes / 8 * 7;
}

void runner_send_limit_of_reason(const struct runner *w, enum exit_reason reason)
{
	static const struct {
		enum exit_reason reason;
		enum limit_id    limit;
	} rows[] = {
		{ EXIT_timeout_wall, LIMIT_wall_ms },
		{ EXIT_timeout_cpu, LIMIT_cpu_ms },
		{ EXIT_oom, LIMIT_memory_bytes },
	};

	if (reason == EXIT_oom && !runner_reached_memory_limit(w))
		return; /* not a limit of the run */
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].reason == reason)
			runner_send_limit_reached(w, rows[i].limit);
}

void runner_enter_state(struct runner *w, enum runner_state next)
{
	switch (w->state) {
	case RUNNER_BUILDS:
	case RUNNER_READY: /* again, when a cell that was built without a zygote gets one */
		assert(next == RUNNER_READY || next == RUNNER_ENDS);
		break;
	case RUNNER_ENDS:
		assert(next == RUNNER_ENDS_UNUSED);
		break;
	case RUNNER_ENDS_UNUSED:
		assert(!"a run that has ended has no other state");
		break;
	}
	w->state = next;
}

bool runner_awaits_spec(const struct runner *w)
{
	return w->for_one_run && !w->spec_from && w->control >= 0;
}

/* The sender of a later spec gets EPIPE, and uses another cell. One that is there is read when the cell has ended. */
void runner_end_run(struct runner *w, enum exit_reason reason)
{
	bool is_first = !runner_is_ending(w), is_unused = !w->spec_from && !runner_awaits_spec(w);

	if (is_unused && w->lease >= 0)
		shutdown(w->lease, SHUT_RD);
	if (is_unused && w->control >= 0)
		shutdown(w->control, SHUT_RD);
	if (is_first) {
		runner_enter_state(w, RUNNER_ENDS);
		w->end.reason = reason;
	}
	cell_kill(&w->cell);
	if (is_first)
		runner_send_limit_of_reason(w, reason);
}

void runner_fail_run(struct runner *w, enum exit_reason reason, const struct err *why)
{
	if (!runner_is_ending(w))
		w->end.why = *why;
	runner_end_run(w, reason);
}
