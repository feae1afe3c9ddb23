/* gate_run.c - a program or a command, in a jail */
#include "gate.h"

#include "clock.h"
#include "queue.h"
#include "run_id.h"
#include "served_run.h"
#include "session.h"

#include <stdio.h>

static int check_and_start_run(struct connection *c, const struct protocol_request *request, struct run_try *try,
			       struct denial *why)
{
	struct server               *d    = c->server;
	const struct served_profile *profile;
	scoped_run_plan              plan = RUN_PLAN_NONE;
	double                       now  = clock_ms(CLOCK_MONOTONIC);
	const struct quota_part      part = { try->memory_bytes, request->kind == REQUEST_open };

	if (d->is_ending)
		return deny(why, DENIAL_unavailable, NULL,
			    "the service is about to end; try again after it has restarted");
	if (request->name && session_name_is_taken(d, request->name, c->peer.uid))
		return deny(why, DENIAL_denied, "name",
			    "you have a session \"%.64s\" already; close it, or use another name", request->name);
	profile = gate_find_allowed_profile(c, request->profile, why);
	/* these checks come first: while the server reads a program it serves no other client */
	if (!profile || quota_check(&d->quota, &c->access_rule->quota, c->peer.uid, &part, now, why) < 0)
		return -1;
	/*
	 * Users share the processors, and the CPU time that it takes to start and clean up a run is counted for no run.
	 * So while others ask for runs, a user may have as many young runs as there are processors; the next run waits
	 * until one of them has ended or is no longer young.
	 */
	try->waits_for_turn = quota_has_other_active_user(&d->quota, c->peer.uid, now) &&
			      served_runs_count_young(d, c->peer.uid, now) >= d->processors;
	if (try->waits_for_turn) {
		why->retry_after_ms = QUOTA_RETRY_MS;
		return deny(why, DENIAL_busy, NULL, "it is other users' turn");
	}
	if (run_plan_build(&plan, &d->places, profile, request, request->fd, why) < 0)
		return -1;
	try->memory_bytes = plan.limits.memory_bytes;
	if (served_run_start(c, request, &plan, try->id, request->fd, why) < 0)
		return -1;
	figures_add_wait(&d->figures, profile->name, now - try->asked_ms);
	return 0;
}

static int try_start_keeping_reason(struct connection *c, const struct protocol_request *request, struct run_try *try,
				    struct denial *why)
{
	int r = check_and_start_run(c, request, try, why);

	if (r < 0)
		snprintf(try->why, sizeof try->why, "%.150s", why->text);
	return r;
}

int gate_handle_run(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct run_try  try = { .asked_ms = clock_ms(CLOCK_MONOTONIC) };
	struct session *s;
	struct err      e;

	(void)reply;
	if (request->session) {
		s = session_find_open_or_deny(c->server, request->session, c->peer.uid, why);
		return s && session_call_start(s, c, request, request->fd, why) == 0 ? GATE_ANSWERS_ITSELF : -1;
	}
	if (run_id_make(try.id, &e) < 0)
		return deny_err(why, DENIAL_broken, NULL, &e);
	if (!queue_has_earlier_runs(c, &try, why) && try_start_keeping_reason(c, request, &try, why) == 0)
		return GATE_ANSWERS_ITSELF;
	return why->code == DENIAL_busy && queue_add_run(c, request, &try, try_start_keeping_reason, why)
		       ? GATE_ANSWERS_ITSELF
		       : -1;
}
