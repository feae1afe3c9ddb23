/* runner_spec.c - what is to be run, from the monitor over the control socket or from the holder of a lease */
#define _GNU_SOURCE
#include "runner_parts.h"

#include "cell_fit.h"
#include "clock.h"
#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

static void adopt_run_spec(struct runner *w, const struct run_spec *o, enum spec_from from)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	w->spec_from = from;
	w->asked     = o->asked <= now ? o->asked : now; /* a time in the future, or NaN, would put off the deadline of the set-up */
	w->limits    = o->limits;
	w->head      = o->head;
}

/* If a zygote was asked already, its fork executes the command, and expects a main.py. So this process removes it. */
static void deliver_spec_to_fork(struct runner *w, const struct run_spec_fds *fds)
{
	bool       is_asked = w->cell.warm.state > WARM_PREPARED;
	struct err e;

	w->is_warm_spec = !w->head.executes && (is_asked || warm_is_zygote_ready(&w->cell.warm));
	if ((is_asked && !w->head.code_len && cell_remove_code(&w->cell, &e) < 0) ||
	    cell_deliver_spec(&w->cell, w->spec.rootfs, &w->head, fds, &e) < 0)
		runner_fail_run(w, EXIT_setup_failed, &e);
	else
		runner_handle_spec_taken(w);
}

/*
 * A command by lease: the holder has written the order file, and this process sends its head to the fork, after it
 * has removed main.py. The fork has given up the right to do that. The holder waits for LAUNCH_STARTED, because the
 * rootfs may not have the command.
 */
static int send_lease_command_to_fork(struct runner *w, struct err *e)
{
	int r;

	if (cell_remove_code(&w->cell, e) < 0)
		return -1;
	r     = run_spec_send_head(w->cell.warm.orders[0], &w->head, -1);
	errno = -r;
	return r < 0 ? err_sys(e, "set-up step order: the order") : 0;
}

/* The clocks start with the program, so an order by lease may ask for as much time as the profile allows. */
static bool are_limits_within_lease(const struct runner *w, const struct limits *asked)
{
	return limits_layer_bits_are_valid(asked) &&
	       asked->wall_ms <= w->wall_ms_max && asked->tool_wait_ms <= w->tool_wait_ms_max &&
	       cell_fit_of_limits(asked, &w->limits, true, w->cell.missing) == CELL_FIT_AS_IT_IS;
}

/* The message is still there: the next turn tries again. */
static bool is_receive_out_of_memory(ssize_t got)
{
	return got < 0 && errno == ENOMEM;
}

bool runner_receive_lease_spec(struct runner *w)
{
	struct run_spec o;
	struct err      e;
	size_t          n;
	ssize_t         got = packet_receive(w->lease, &o, sizeof o, NULL, 0, &n);

	if (is_receive_out_of_memory(got))
		return true;
	if (got != sizeof o || w->spec_from) {
		fd_closep(&w->lease);
		return false;
	}
	w->client      = fd_take(&w->lease);
	w->taken_due_ms = clock_ms(CLOCK_MONOTONIC) + LAUNCH_TAKEN_MS;
	if (!are_limits_within_lease(w, &o.limits) || !run_spec_head_is_bounded(&o.head)) {
		w->spec_from = SPEC_FROM_LEASE;
		err_set(&e, ERR_DENIED, "more was asked of a cell that stands ready than it was built for");
		runner_fail_run(w, EXIT_denied, &e);
		return true;
	}
	adopt_run_spec(w, &o, SPEC_FROM_LEASE);
	w->is_warm_spec   = !o.head.executes;
	w->client_streams = o.head.code_len ? STREAMS_IN_LEASE : STREAMS_HERE;
	if (o.head.code_len || runner_is_ending(w) || send_lease_command_to_fork(w, &e) == 0)
		runner_handle_spec_taken(w);
	else
		runner_fail_run(w, EXIT_setup_failed, &e);
	return true;
}

/* False: end of file, or no valid spec. It comes from brig, and is checked all the same: the cell gets its descriptors. */
static bool receive_control_spec(struct runner *w, bool is_late)
{
	struct run_spec     spec;
	struct run_spec_fds given = RUN_SPEC_FDS_NONE;
	int                 fds[4];
	size_t              n;
	ssize_t             got = packet_receive(w->control, &spec, sizeof spec, fds, ARRAY_LEN(fds), &n);

	if (is_receive_out_of_memory(got))
		return true;
	if (got != sizeof spec || w->spec_from || !run_spec_head_is_bounded(&spec.head) ||
	    n != 2 + !!spec.head.code_len + spec.head.tools) {
		packet_close_fds(fds, n);
		return false;
	}
	adopt_run_spec(w, &spec, SPEC_FROM_MONITOR);
	fd_closep(&w->lease); /* no spec can come by lease any more */
	w->client       = fds[0];
	given.exec_args = fds[1];
	if (spec.head.code_len)
		given.code = fds[2];
	if (spec.head.tools)
		given.tools = fds[n - 1];
	if (!is_late)
		deliver_spec_to_fork(w, &given);
	while (n > 1)
		close(fds[--n]);
	return true;
}

bool runner_receive_control_spec(struct runner *w)
{
	return receive_control_spec(w, false);
}

void runner_receive_late_spec(struct runner *w)
{
	if (w->lease >= 0 && !w->spec_from) {
		shutdown(w->lease, SHUT_RD);
		(void)runner_receive_lease_spec(w);
	}
	if (w->control < 0 || w->spec_from)
		return;
	shutdown(w->control, SHUT_RD);
	(void)receive_control_spec(w, true);
}
