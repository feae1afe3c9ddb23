#include "server_user.h"

#include "clock.h"

#include <stdlib.h>

#define TURN_MS 0.2

static struct server_user *find_user(const struct server *d, uid_t uid)
{
	struct server_user *u;

	LIST_FOREACH(u, &d->users, link)
		if (u->uid == uid)
			return u;
	return NULL;
}

size_t server_user_count_connections(const struct server *d, uid_t uid)
{
	const struct server_user *u = find_user(d, uid);

	return u ? u->connections : 0;
}

/*
 * One turn is a large message or several small ones. With one event a turn, a client that connects and leaves again and
 * again would fall behind: each connection has two events, while the server admits the next one between any two turns.
 * The client would then be refused because of connections that it has already closed.
 */
static void server_user_on_readable(void *owner)
{
	struct server_user *u     = owner;
	double              until = clock_ms(CLOCK_MONOTONIC) + TURN_MS;
	struct err          ignored; /* it comes again at the next turn */

	u->connections++; /* keeps u: an event may close the last connection */
	while (loop_turn(&u->loop, 0, &ignored) > 0 && clock_ms(CLOCK_MONOTONIC) < until)
		;
	server_user_remove_connection(u->server, u);
}

static struct server_user *server_user_new(struct server *d, uid_t uid, struct err *e)
{
	struct server_user *u = calloc(1, sizeof *u);

	if (!u) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	TAILQ_INIT(&u->queue);
	u->server = d;
	u->uid    = uid;
	if (loop_open(&u->loop, e) < 0) {
		free(u);
		return NULL;
	}
	u->source = (struct loop_source){ u->loop.fd, server_user_on_readable, u };
	if (loop_add(&d->loop, &u->source, e) < 0) {
		loop_close(&u->loop);
		free(u);
		return NULL;
	}
	LIST_INSERT_HEAD(&d->users, u, link);
	return u;
}

struct server_user *server_user_add_connection(struct server *d, uid_t uid, struct err *e)
{
	struct server_user *u = find_user(d, uid);

	if (!u)
		u = server_user_new(d, uid, e);
	if (u)
		u->connections++;
	return u;
}

void server_user_remove_connection(struct server *d, struct server_user *u)
{
	if (--u->connections)
		return;
	LIST_REMOVE(u, link);
	loop_remove(&d->loop, &u->source);
	loop_close(&u->loop);
	free(u);
}
