#define _GNU_SOURCE
#include "ticket.h"

#include "fd.h"
#include "packet.h"

#include <stdlib.h>

enum { PART_OF_FILES = 4 };

void ticket_box_init(struct ticket_box *b, uint64_t files)
{
	for (size_t i = 0; i < ARRAY_LEN(b->of); i++)
		TAILQ_INIT(&b->of[i]);
	b->n    = 0;
	b->most = files / PART_OF_FILES / TICKET_FDS;
}

static void close_all(int fds[TICKET_FDS])
{
	for (size_t i = 0; i < TICKET_FDS; i++)
		fd_closep(&fds[i]);
}

void ticket_free(struct ticket *t)
{
	if (t)
		close_all(t->fd);
	free(t);
}

void ticket_box_put(struct ticket_box *b, const struct keeper_ticket *message, int fds[TICKET_FDS])
{
	bool           fits = message->profile < ARRAY_LEN(b->of) && b->n < b->most;
	struct ticket *t    = fits ? malloc(sizeof *t) : NULL;

	if (!t) {
		close_all(fds);
		return;
	}
	t->message = *message;
	for (size_t i = 0; i < TICKET_FDS; i++)
		t->fd[i] = fd_take(&fds[i]);
	TAILQ_INSERT_TAIL(&b->of[message->profile], t, link);
	b->n++;
}

static void take_out(struct ticket_box *b, struct ticket *t)
{
	TAILQ_REMOVE(&b->of[t->message.profile], t, link);
	b->n--;
}

uint64_t ticket_box_count(const struct ticket_box *b, unsigned profile)
{
	const struct ticket *t;
	uint64_t             n = 0;

	if (profile < ARRAY_LEN(b->of))
		TAILQ_FOREACH(t, &b->of[profile], link)
			n++;
	return n;
}

struct ticket *ticket_box_take(struct ticket_box *b, unsigned profile)
{
	struct ticket *t = profile < ARRAY_LEN(b->of) ? TAILQ_FIRST(&b->of[profile]) : NULL;

	if (t)
		take_out(b, t);
	return t;
}

void ticket_box_put_back(struct ticket_box *b, struct ticket *t)
{
	TAILQ_INSERT_HEAD(&b->of[t->message.profile], t, link);
	b->n++;
}

void ticket_box_void(struct ticket_box *b, const struct keeper_ticket *message)
{
	struct ticket *t;

	if (message->profile >= ARRAY_LEN(b->of))
		return;
	TAILQ_FOREACH(t, &b->of[message->profile], link)
	if (t->message.cell.number == message->cell.number && t->message.cell.generation == message->cell.generation) {
		take_out(b, t);
		ticket_free(t);
		return;
	}
}

void ticket_box_done(struct ticket_box *b)
{
	struct ticket *t;

	for (unsigned i = 0; i < ARRAY_LEN(b->of); i++)
		while ((t = ticket_box_take(b, i)))
			ticket_free(t);
}

/* --- using one --- */

/*
 * The supervisor gets the order first, so that it has it when the program begins. If the fork then cannot be sent its order, the caller
 * closes the ticket: the supervisor sees the end of its client and ends the cell, so nothing begins. A command's fork is told by the
 * supervisor, once it has removed main.py.
 */
bool ticket_use(const struct ticket *t, const struct launch_order *order, const char *exec_args, const char *code, int tools)
{
	const struct order_head *head = &order->head;
	struct err               ignored;

	if (!head->code_len)
		return order_file_write(t->fd[TICKET_ORDER_FILE], head, exec_args, NULL, &ignored) == 0 &&
		       packet_offer(t->fd[TICKET_SUPERVISOR], order, sizeof *order, NULL, 0) == 0;
	return packet_offer(t->fd[TICKET_SUPERVISOR], order, sizeof *order, NULL, 0) == 0 &&
	       order_file_write(t->fd[TICKET_ORDER_FILE], head, exec_args, code, &ignored) == 0 &&
	       order_file_send(t->fd[TICKET_ORDERS], head, tools) == 0;
}
