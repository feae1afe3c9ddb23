#define _GNU_SOURCE
#include "runner_send.h"

#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int runner_send_message(int sock, const struct launch_message *message, const int *fds, size_t n, struct err *e)
{
	int r = packet_send_nowait(sock, message, sizeof *message, fds, n); /* does not wait for the client */

	if (r == 0 || r == -EPIPE || r == -ECONNRESET)
		return 0;
	errno = -r;
	return err_sys(e, "no message can be sent to the client");
}

static void send_message_best_effort(int sock, const struct launch_message *message)
{
	struct err ignored; /* the other end sees this end close */

	if (sock >= 0)
		(void)!runner_send_message(sock, message, NULL, 0, &ignored);
}

int runner_send_program_started(struct runner *w, struct err *e)
{
	struct launch_message message = { .kind = LAUNCH_STARTED };
	size_t             n    = pipes_count(w->head.stdin_pipe, w->head.result_pipe);
	int                   r       = runner_send_message(w->client, &message, w->streams, n, e);

	for (size_t i = 0; i < ARRAY_LEN(w->streams); i++)
		fd_closep(&w->streams[i]);
	return r;
}

void runner_send_limit_reached(const struct runner *w, enum limit_id limit)
{
	struct launch_message message = { .kind   = LAUNCH_LIMIT,
					  .number = limit,
					  .value  = limits_value(w->spec.limits, &limits_fields[limit]) };

	send_message_best_effort(w->client, &message);
}

void runner_fill_layers(const struct runner *w, struct run_result *ret)
{
	ret->layers  = w->cell.layers;
	ret->missing = w->cell.missing;
	snprintf(ret->missing_why[0], sizeof ret->missing_why[0], "%s", w->cell.rootless.why);
	snprintf(ret->missing_why[1], sizeof ret->missing_why[1], "%s", w->cell.group.why);
}

void runner_send_session_state(const struct runner *w)
{
	struct launch_message message = {
		.kind = LAUNCH_SESSION, .number = w->victims, .value = w->is_frozen, .end = RUN_RESULT_NONE
	};

	runner_fill_layers(w, &message.end);
	memcpy(message.end.rootfs_digest, w->cell.rootfs.digest, sizeof message.end.rootfs_digest);
	send_message_best_effort(w->client, &message);
}

/* The descriptors are in the order of run_spec.h; the client's ends among them, in that of pipes.h. */
static int make_lease_fds(struct runner *w, int fds[LEASE_FDS])
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	w->lease            = pair[0];
	fds[LEASE_SUPERVISOR] = pair[1];
	fds[LEASE_ORDERS]   = w->cell.warm.orders[0];
	fds[LEASE_ORDER_FILE] = w->cell.warm.run_spec_file;
	memcpy(fds + LEASE_STDOUT, w->cell.warm.prepared + PREPARED_CLIENT, PIPES_MAX * sizeof *fds);
	return 0;
}

void runner_send_cell_ready(struct runner *w)
{
	struct launch_message message = { .kind = LAUNCH_READY, .number = w->cells_before };
	int                fds[LEASE_FDS];

	if (w->lease >= 0)
		return; /* another zygote was asked: the lease that is out stays valid, and a second would leave it unread */
	if (w->cell.warm.state == WARM_PREPARED || make_lease_fds(w, fds) < 0) {
		send_message_best_effort(w->control, &message);
		return;
	}
	(void)!packet_send(w->control, &message, sizeof message, fds, LEASE_FDS);
	close(fds[LEASE_SUPERVISOR]);
}

void runner_send_lease_taken(struct runner *w)
{
	if (w->taken_due_ms > 0)
		send_message_best_effort(w->control, &(struct launch_message){ .kind = LAUNCH_TAKEN });
	w->taken_due_ms = 0;
}

bool runner_send_rests(int control)
{
	struct err ignored;

	return runner_send_message(control, &(struct launch_message){ .kind = LAUNCH_RESTS }, NULL, 0, &ignored) == 0;
}

void runner_send_lease_returned(const struct runner *w)
{
	struct launch_message message = { .kind = LAUNCH_READY, .number = w->cells_before };

	send_message_best_effort(w->control, &message);
}

void runner_send_run_ended(const struct runner *w)
{
	struct launch_message message = { .kind = LAUNCH_ENDED, .end = w->end };

	if (w->client < 0 && w->state == RUNNER_ENDS_UNUSED)
		message.end.why.kind = ERR_NONE;
	send_message_best_effort(w->client >= 0 ? w->client : w->control, &message);
}
