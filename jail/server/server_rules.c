/* server_rules.c - replaces the rules of a server that serves */
#include "clock.h"
#include "queue.h"
#include "rules.h"

void server_set_rules(struct server *d, struct rules *r)
{
	struct config      old  = d->config; /* access borrows from it */
	struct profile_set gone = d->profiles;
	struct connection *c;
	struct peer_groups groups;
	struct err         e;

	d->config       = r->config;
	d->access       = r->access;
	d->profiles     = r->profiles;
	d->quota.all    = (struct quota_limits){ .runs = d->config.runs, .memory_bytes = d->config.memory_bytes };
	d->read_ms      = clock_ms(CLOCK_MONOTONIC);
	r->config       = (struct config){ 0 };
	r->profiles     = (struct profile_set){ 0 };
	if (!d->first_config.source)
		d->first_config = config_acquire(&d->config);
	/* A client that the rules no longer name keeps the runs that it has, and gets no others. */
	LIST_FOREACH(c, &d->connections, link) {
		bool is_known = peer_read_groups(&groups, c->source.fd, &e) == 0;

		c->access_rule = is_known ? access_find(&d->access, &c->peer, &groups) : NULL;
	}
	queue_check_access_again(d);
	profile_set_done(&gone);
	config_done(&old);
}
