#define _GNU_SOURCE
#include "monitored_cell.h"

#include "clock.h"
#include "fd.h"
#include "monitor_check.h"
#include "packet.h"
#include "supervisor_protocol.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* --- opening --- */

static int take_slot_and_cgroups(struct monitored_cell *s, const struct monitored_cell_options *w, struct err *e)
{
	enum cg_answer answer;

	s->ids = &w->userns->share->ids;
	do {
		id_pool_return_slot(s->ids, &s->slot);
		if (id_pool_take_slot(s->ids, &s->slot, e) < 0)
			return -1;
		answer = cg_make_in_parent(&s->group, w->parent, s->slot.number, e);
	} while (answer == CG_TAKEN);
	if (answer == CG_FAILED)
		return -1;
	return w->lends ? cg_lend_to_supervisor(&s->group, e) : 0;
}

/* leaves: the supervisor gets them. */
static void fill_cell_message(struct supervisor_cell *cell, const struct monitored_cell *s, const struct monitored_cell_options *w,
			      bool leaves)
{
	memset(cell, 0, sizeof *cell);
	memcpy(cell->digest, w->tree->digest, sizeof cell->digest);
	cell->number     = s->slot.number;
	cell->init_id    = s->slot.init_id;
	cell->program_id = s->slot.program_id;
	cell->warm       = s->warm;
	cell->for_one_run = w->run != NULL;
	cell->limits     = *w->limits;
	cell->layers     = s->group.layers;
	cell->missing    = s->group.missing;
	cell->leaves     = leaves ? (uint32_t)s->group.n : 0;
	snprintf(cell->cg_why, sizeof cell->cg_why, "%s", s->group.why);
	for (size_t i = 0; i < cell->leaves; i++) {
		cell->leaf[i].v2          = s->group.leaf[i].v2;
		cell->leaf[i].controllers = s->group.leaf[i].controllers;
	}
	if (w->run) {
		cell->shown_len = w->run->shown_len;
		memcpy(cell->shown, w->run->shown, sizeof cell->shown);
		cell->files    = w->run->files;
		cell->terminals = w->run->terminals;
		cell->has_code = w->run->order.head.code_len > 0;
	}
}

/* control: the supervisor's end of a new place's socket; -1: the supervisor has the place, at s->control. */
static int send_cell_to_supervisor(const struct monitored_cell *s, const struct monitored_cell_options *w, int control, struct err *e)
{
	struct supervisor_cell cell;
	int                    fds[PACKET_FDS_MAX], r;
	size_t                 n = 0;

	fill_cell_message(&cell, s, w, control >= 0 || w->leaves_are_new);
	if (control >= 0) {
		fds[n++] = control;
		fds[n++] = s->slot.fd;
		fds[n++] = w->tree->tree_fd;
	}
	for (size_t i = 0; i < cell.leaves; i++)
		fds[n++] = s->group.leaf[i].fd;
	for (uint32_t i = 0; i < cell.shown_len; i++)
		fds[n++] = w->shown_fd[i];
	if (cell.files)
		fds[n++] = w->shown_fd[cell.shown_len];
	/* A supervisor that reads nothing from the socket of a place must not make the monitor wait, either. */
	r = control >= 0 ? packet_send(w->userns->supervisor, &cell, sizeof cell, fds, n)
			 : packet_send_nowait(s->control, &cell, sizeof cell, fds, n);
	if (r == -EAGAIN) /* it is stopped, or hangs: the runs of all profiles would wait with the monitor */
		profile_userns_kill(w->userns);
	errno = -r;
	return r < 0 ? err_sys(e, "the supervisor cannot be reached") : 0;
}

static int request_cell_build(struct monitored_cell *s, const struct monitored_cell_options *w, struct err *e)
{
	int pair[2], r;

	if (s->control < 0 && take_slot_and_cgroups(s, w, e) < 0)
		return -1;
	if (cg_set_limits(&s->group, w->limits, e) < 0)
		return -1;
	if (s->control >= 0)
		return send_cell_to_supervisor(s, w, -1, e);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "control socket of a cell: socketpair");
	s->control = pair[0];
	r          = send_cell_to_supervisor(s, w, pair[1], e);
	close(pair[1]);
	return r;
}

int monitored_cell_open(struct monitored_cell *s, uint32_t profile, const struct monitored_cell_options *w, struct err *e)
{
	bool       rested = s->control >= 0;
	struct err ignored;

	s->profile = profile;
	s->is_for_any_run = !w->run;
	s->warm    = w->warm;
	s->state   = MONITORED_CELL_BUILDING;
	s->since   = clock_ms(CLOCK_MONOTONIC);
	s->rootfs_since = w->rootfs_since;
	if (request_cell_build(s, w, e) == 0)
		return 0;
	if (rested) { /* a process of a supervisor that was taken over may have entered them */
		monitored_cell_close_control(s);
		(void)monitored_cell_clean_up(s);
		return -1;
	}
	fd_closep(&s->control);
	(void)!cg_close(&s->group, &ignored); /* no process is in them yet */
	id_pool_return_slot(s->ids, &s->slot);
	*s = MONITORED_CELL_NONE;
	return -1;
}

/* --- taking --- */

enum monitored_cell_answer monitored_cell_assign_run(struct monitored_cell *s, const struct monitor_run *run, const int *fds, struct err *e)
{
	double          now = clock_ms(CLOCK_MONOTONIC);
	struct run_spec order;
	int             r;

	if (cg_set_limits(&s->group, &run->order.limits, e) < 0 || cg_check_required_limits(&s->group, &run->order.limits, e) < 0)
		return MONITORED_CELL_REFUSED;
	order = run->order;
	if (order.asked > now)
		order.asked = now; /* with a time in the future the set-up would never be late */
	r = packet_send_nowait(s->control, &order, sizeof order, fds, monitor_count_spec_fds(run));
	if (r == -EPIPE || r == -ECONNRESET)
		return MONITORED_CELL_IS_GONE;
	errno = -r;
	if (r < 0) { /* ENOBUFS, ETOOMANYREFS: the next cell could not be sent it either */
		err_sys(e, "the order cannot be sent to the cell");
		return MONITORED_CELL_REFUSED;
	}
	s->state = MONITORED_CELL_TAKEN;
	s->since = now;
	return MONITORED_CELL_TOOK_IT;
}

static void close_received_fds(int *fds, size_t *n)
{
	packet_close_fds(fds, *n);
	*n = 0;
}

/*
 * READY comes once for a cell; again with a lease, if the cell was built before there was a zygote; again without a
 * lease, when the lease was closed unused; and then for the next cell in the place of one whose lease was used.
 */
static void handle_cell_ready(struct monitored_cell *s, uint32_t cells_before, int *fds, size_t *n)
{
	bool is_expected = s->state == MONITORED_CELL_BUILDING || (s->state == MONITORED_CELL_READY && !s->lease_is_out);

	s->ready_is_next_cell = s->state == MONITORED_CELL_READY && s->lease_is_out && s->is_for_any_run && cells_before == s->cells_before + 1;
	s->cells_before += s->ready_is_next_cell;
	if (s->ready_is_next_cell || (s->state == MONITORED_CELL_READY && *n == 0 && cells_before == s->cells_before))
		s->lease_is_out = false;
	if (!(is_expected || s->ready_is_next_cell) || *n != LEASE_FDS)
		close_received_fds(fds, n);
	if (is_expected)
		s->state = MONITORED_CELL_READY;
}

/* Only what the next cell in the place will have, too, is left. */
static void keep_resting_cell_entry(struct monitored_cell *s)
{
	struct monitored_cell rests = MONITORED_CELL_NONE;

	rests.state        = MONITORED_CELL_RESTING;
	rests.since        = clock_ms(CLOCK_MONOTONIC);
	rests.profile      = s->profile;
	rests.rootfs_since = s->rootfs_since;
	rests.control      = s->control;
	rests.ids          = s->ids;
	rests.slot         = s->slot;
	rests.group        = s->group;
	*s                 = rests;
}

bool monitored_cell_receive_message(struct monitored_cell *s, int fds[LEASE_FDS], size_t *n, struct err *e)
{
	struct launch_message message;
	ssize_t               got = packet_receive(s->control, &message, sizeof message, fds, LEASE_FDS, n);

	e->kind = ERR_NONE;
	if (got != sizeof message) {
		close_received_fds(fds, n);
		return false;
	}
	if (message.kind != LAUNCH_READY)
		close_received_fds(fds, n);
	switch (message.kind) {
	case LAUNCH_READY:
		handle_cell_ready(s, message.number, fds, n);
		return true;
	case LAUNCH_TAKEN:
		if (s->state != MONITORED_CELL_READY)
			return true;
		s->state        = MONITORED_CELL_TAKEN; /* if it has no lease, its supervisor harms only its own cell */
		s->lease_is_out = false;
		s->since        = clock_ms(CLOCK_MONOTONIC) - LAUNCH_TAKEN_MS;
		return true;
	case LAUNCH_RESTS:
		if (s->state == MONITORED_CELL_TAKEN)
			keep_resting_cell_entry(s);
		return true;
	case LAUNCH_ENDED:
		/* A supervisor is trusted in its own profile only: the service's log gets one line of text, whatever it sent. */
		*e                          = message.end.why;
		e->text[sizeof e->text - 1] = 0;
		text_make_plain(e->text);
		if (e->kind == ERR_NONE)
			s->state = MONITORED_CELL_TAKEN; /* the cell did nothing wrong, its zygote ended for example */
		return true;
	case LAUNCH_SLOT:
	case LAUNCH_STARTED:
	case LAUNCH_SESSION:
	case LAUNCH_LIMIT:
		break;
	}
	return true;
}

/* --- leaving --- */

void monitored_cell_close_control(struct monitored_cell *s)
{
	fd_closep(&s->control);
	s->state = MONITORED_CELL_LEAVING;
	s->since = clock_ms(CLOCK_MONOTONIC);
}

enum { KILL_AFTER_MS = 100 };

bool monitored_cell_clean_up(struct monitored_cell *s)
{
	if (!cg_remove(&s->group)) {
		if (clock_ms(CLOCK_MONOTONIC) - s->since > KILL_AFTER_MS)
			cg_kill_members(&s->group);
		return false;
	}
	id_pool_return_slot(s->ids, &s->slot);
	*s = MONITORED_CELL_NONE;
	return true;
}
