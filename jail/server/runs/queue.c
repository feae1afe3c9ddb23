#define _GNU_SOURCE
#include "queue.h"

#include "clock.h"
#include "fd.h"
#include "packet.h"

#include <stdlib.h>
#include <string.h>

enum {
	/* how long a request without wait_ms waits for its user's turn, which takes milliseconds */
	TURN_WAIT_MS = 10 * 1000,
	AGAIN_MS = 100, TURN_AGAIN_MS = 5, /* until the next try, if no run ends before */
};

struct queued_run {
	TAILQ_ENTRY(queued_run) link;
	struct connection      *connection;
	struct protocol_request request;
	struct run_try          try;
	queue_start_fn         *start;
	int                     fd[PROTOCOL_FDS_MAX];
	double                  until_ms;
};

/* --- in and out --- */

static void queued_run_unlink(struct queued_run *q)
{
	struct server_user *u = q->connection->user;

	TAILQ_REMOVE(&u->queue, q, link);
	u->queued--;
	u->queued_fds -= q->request.fds;
	u->server->queued--;
	u->server->queued_fds -= q->request.fds;
	q->connection->runs--;
	q->connection->heard_ms = clock_ms(CLOCK_MONOTONIC);
}

static void queued_run_free(struct queued_run *q)
{
	queued_run_unlink(q);
	packet_close_fds(q->fd, q->request.fds);
	protocol_request_done(&q->request);
	free(q);
}

static void queued_run_refuse_and_free(struct queued_run *q, const struct denial *why)
{
	connection_refuse_request(q->connection, &q->request, why);
	queued_run_free(q);
}

/* --- turns --- */

static void try_first_queued_run(struct server_user *u)
{
	struct queued_run *q = TAILQ_FIRST(&u->queue);
	struct denial      why;

	if (q->start(q->connection, &q->request, &q->try, &why) == 0) {
		u->turn = ++u->server->turns;
		queued_run_free(q);
	} else if (why.code == DENIAL_busy) {
		u->has_tried = true;
	} else {
		queued_run_refuse_and_free(q, &why);
	}
}

static void refuse_expired_runs(struct server_user *u, double now)
{
	struct queued_run *q = TAILQ_FIRST(&u->queue), *next;
	struct denial      why;

	for (; q; q = next) {
		next = TAILQ_NEXT(q, link);
		if (now < q->until_ms)
			continue;
		deny(&why, DENIAL_busy, NULL, "waited too long: %s", q->try.why);
		why.retry_after_ms = QUOTA_RETRY_MS;
		queued_run_refuse_and_free(q, &why);
	}
}

void queue_start_runs(void *server)
{
	struct server      *d   = server;
	double              now = clock_ms(CLOCK_MONOTONIC);
	bool                by_turn = false;
	struct server_user *u, *next;

	LIST_FOREACH(u, &d->users, link) {
		u->has_tried = false;
		refuse_expired_runs(u, now);
	}
	do {
		next = NULL;
		LIST_FOREACH(u, &d->users, link)
			if (u->queued && !u->has_tried && (!next || u->turn < next->turn))
				next = u;
		if (next)
			try_first_queued_run(next);
	} while (next);
	LIST_FOREACH(u, &d->users, link)
		by_turn |= u->queued && TAILQ_FIRST(&u->queue)->try.waits_for_turn;
	if (d->queued)
		loop_timer_set(&d->loop, &d->queue_timer, by_turn ? TURN_AGAIN_MS : AGAIN_MS);
}

void queue_check_access_again(struct server *d)
{
	struct server_user *u;
	struct queued_run  *q, *next;
	struct denial       why;

	LIST_FOREACH(u, &d->users, link)
		for (q = TAILQ_FIRST(&u->queue); q; q = next) {
			next = TAILQ_NEXT(q, link);
			if (!gate_find_allowed_profile(q->connection, q->request.profile, &why))
				queued_run_refuse_and_free(q, &why);
		}
	queue_retry_now(d);
}

void queue_retry_now(struct server *d)
{
	if (d->queued)
		loop_timer_set(&d->loop, &d->queue_timer, 0);
}

/* --- from outside --- */

bool queue_has_earlier_runs(const struct connection *c, struct run_try *try, struct denial *why)
{
	const struct queued_run *first = TAILQ_FIRST(&c->user->queue);

	if (!first)
		return false;
	try->waits_for_turn = first->try.waits_for_turn;
	deny(why, DENIAL_busy, NULL, "%s; %zu of your runs are waiting", first->try.why, c->user->queued);
	why->retry_after_ms = QUOTA_RETRY_MS;
	snprintf(try->why, sizeof try->why, "%s", first->try.why);
	return true;
}

bool queue_add_run(struct connection *c, const struct protocol_request *request, const struct run_try *try,
		   queue_start_fn *start, const struct denial *why)
{
	struct server_user *u       = c->user;
	uint64_t            wait_ms = request->wait_ms || !try->waits_for_turn ? request->wait_ms : TURN_WAIT_MS;
	struct server      *d       = u->server;
	bool                fits    = d->queued < QUEUE_MAX && u->queued < QUEUE_OF_USER_MAX &&
		    u->queued_fds + request->fds <= d->queued_fds_max / 2 &&
		    d->queued_fds + request->fds <= d->queued_fds_max;
	struct queued_run *q = wait_ms && fits ? malloc(sizeof *q) : NULL;

	if (!q)
		return false;
	*q = (struct queued_run){ .connection = c,
				  .request    = *request,
				  .try        = *try,
				  .start      = start,
				  .until_ms   = clock_ms(CLOCK_MONOTONIC) + (double)wait_ms };
	json_incref(request->source); /* the request borrows all texts from it */
	for (size_t i = 0; i < request->fds; i++)
		q->fd[i] = fd_take(&request->fd[i]);
	q->request.fd = q->fd;
	TAILQ_INSERT_TAIL(&u->queue, q, link);
	u->queued++;
	u->queued_fds += request->fds;
	u->server->queued++;
	u->server->queued_fds += request->fds;
	c->runs++;
	if (request->wait_ms)
		connection_send(c, protocol_waiting_event(try->id, request->tag, why->text), NULL, 0);
	if (!u->server->queue_timer.set)
		loop_timer_set(&u->server->loop, &u->server->queue_timer,
			       try->waits_for_turn ? TURN_AGAIN_MS : AGAIN_MS);
	return true;
}

bool queue_cancel_run(struct server *d, const char *id, uid_t uid)
{
	struct server_user *u;
	struct queued_run  *q;
	struct denial       why;

	LIST_FOREACH(u, &d->users, link)
		TAILQ_FOREACH(q, &u->queue, link) {
			if ((uid != 0 && u->uid != uid) || strcmp(q->try.id, id) != 0)
				continue;
			deny(&why, DENIAL_busy, NULL, "cancelled while it waited");
			queued_run_refuse_and_free(q, &why);
			return true;
		}
	return false;
}

void queue_drop_connection(struct connection *c)
{
	struct queued_run *q = TAILQ_FIRST(&c->user->queue), *next;

	for (; q; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->connection != c)
			continue;
		queued_run_free(q);
	}
}

void queue_refuse_all(struct server *d)
{
	struct server_user *u;
	struct denial       why;

	deny(&why, DENIAL_unavailable, NULL, "the service is about to end; try again after it has restarted");
	LIST_FOREACH(u, &d->users, link)
		while (u->queued)
			queued_run_refuse_and_free(TAILQ_FIRST(&u->queue), &why);
}
