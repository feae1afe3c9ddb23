#define _GNU_SOURCE
#include "lease.h"

#include "fd.h"
#include "packet.h"

#include <stdlib.h>

enum { PART_OF_FILES = 4 };

void lease_box_init(struct lease_box *b, uint64_t files)
{
	for (size_t i = 0; i < ARRAY_LEN(b->of); i++)
		TAILQ_INIT(&b->of[i]);
	b->n    = 0;
	b->most = files / PART_OF_FILES / LEASE_FDS;
}

static void close_lease_fds(int fds[LEASE_FDS])
{
	for (size_t i = 0; i < LEASE_FDS; i++)
		fd_closep(&fds[i]);
}

void lease_free(struct lease *t)
{
	if (t)
		close_lease_fds(t->fd);
	free(t);
}

void lease_box_add(struct lease_box *b, const struct monitor_lease *message, int fds[LEASE_FDS])
{
	bool          fits = message->profile < ARRAY_LEN(b->of) && b->n < b->most;
	struct lease *t    = fits ? malloc(sizeof *t) : NULL;

	if (!t) {
		close_lease_fds(fds);
		return;
	}
	t->message = *message;
	for (size_t i = 0; i < LEASE_FDS; i++)
		t->fd[i] = fd_take(&fds[i]);
	TAILQ_INSERT_TAIL(&b->of[message->profile], t, link);
	b->n++;
}

static void remove_lease_from_box(struct lease_box *b, struct lease *t)
{
	TAILQ_REMOVE(&b->of[t->message.profile], t, link);
	b->n--;
}

uint64_t lease_box_count_of_profile(const struct lease_box *b, unsigned profile)
{
	const struct lease *t;
	uint64_t            n = 0;

	if (profile < ARRAY_LEN(b->of))
		TAILQ_FOREACH(t, &b->of[profile], link)
			n++;
	return n;
}

struct lease *lease_box_take(struct lease_box *b, unsigned profile)
{
	struct lease *t = profile < ARRAY_LEN(b->of) ? TAILQ_FIRST(&b->of[profile]) : NULL;

	if (t)
		remove_lease_from_box(b, t);
	return t;
}

void lease_box_put_back(struct lease_box *b, struct lease *t)
{
	TAILQ_INSERT_HEAD(&b->of[t->message.profile], t, link);
	b->n++;
}

void lease_box_drop_recalled(struct lease_box *b, const struct monitor_lease *message)
{
	struct lease *t;

	if (message->profile >= ARRAY_LEN(b->of))
		return;
	TAILQ_FOREACH(t, &b->of[message->profile], link)
	if (t->message.cell.number == message->cell.number && t->message.cell.generation == message->cell.generation) {
		remove_lease_from_box(b, t);
		lease_free(t);
		return;
	}
}

void lease_box_free(struct lease_box *b)
{
	struct lease *t;

	for (unsigned i = 0; i < ARRAY_LEN(b->of); i++)
		while ((t = lease_box_take(b, i)))
			lease_free(t);
}

/* --- using one --- */

/*
 * The supervisor gets the spec first, so that it has it when the program begins. If the fork then cannot be sent its
 * spec, the caller closes the lease: the supervisor sees the end of its client and ends the cell, so nothing begins. A
 * command's fork gets it from the supervisor, once it has removed main.py.
 */
bool lease_send_run_spec(const struct lease *t, const struct run_spec *spec, const char *exec_args,
			 const char *code, int tools)
{
	const struct run_spec_head *head = &spec->head;
	struct err                  ignored;

	if (!head->code_len)
		return run_spec_file_write(t->fd[LEASE_ORDER_FILE], head, exec_args, NULL, &ignored) == 0 &&
		       packet_send_nowait(t->fd[LEASE_SUPERVISOR], spec, sizeof *spec, NULL, 0) == 0;
	return packet_send_nowait(t->fd[LEASE_SUPERVISOR], spec, sizeof *spec, NULL, 0) == 0 &&
	       run_spec_file_write(t->fd[LEASE_ORDER_FILE], head, exec_args, code, &ignored) == 0 &&
	       run_spec_send_head(t->fd[LEASE_ORDERS], head, tools) == 0;
}
