#include "door_user.h"

#include "clock.h"

#include <stdlib.h>

#define TURN_MS 0.2

static struct door_user *find_user(const struct door *d, uid_t uid)
{
	struct door_user *u;

	LIST_FOREACH(u, &d->users, link)
		if (u->uid == uid)
			return u;
	return NULL;
}

size_t door_user_connections(const struct door *d, uid_t uid)
{
	const struct door_user *u = find_user(d, uid);

	return u ? u->connections : 0;
}

/*
 * One turn is a large message, or some small ones: a client that only connects and leaves has two for each connection
 * that is admitted in between, and would be turned away for those that it has left.
 */
static void hear_user(void *owner)
{
	struct door_user *u     = owner;
	double            until = clock_ms(CLOCK_MONOTONIC) + TURN_MS;
	struct err        ignored; /* the next turn meets it again */

	u->connections++; /* what is heard may close the last one */
	while (loop_turn(&u->loop, 0, &ignored) > 0 && clock_ms(CLOCK_MONOTONIC) < until)
		;
	door_user_leave(u->door, u);
}

static struct door_user *make_user(struct door *d, uid_t uid, struct err *e)
{
	struct door_user *u = calloc(1, sizeof *u);

	if (!u) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	TAILQ_INIT(&u->queue);
	u->door = d;
	u->uid  = uid;
	if (loop_open(&u->loop, e) < 0) {
		free(u);
		return NULL;
	}
	u->source = (struct loop_source){ u->loop.fd, hear_user, u };
	if (loop_add(&d->loop, &u->source, e) < 0) {
		loop_close(&u->loop);
		free(u);
		return NULL;
	}
	LIST_INSERT_HEAD(&d->users, u, link);
	return u;
}

struct door_user *door_user_join(struct door *d, uid_t uid, struct err *e)
{
	struct door_user *u = find_user(d, uid);

	if (!u)
		u = make_user(d, uid, e);
	if (u)
		u->connections++;
	return u;
}

void door_user_leave(struct door *d, struct door_user *u)
{
	if (--u->connections)
		return;
	LIST_REMOVE(u, link);
	loop_remove(&d->loop, &u->source);
	loop_close(&u->loop);
	free(u);
}
