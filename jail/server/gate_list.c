/* gate_list.c - the runs that this client may see: its user's own, or all */
#include "clock.h"
#include "gate.h"
#include "served_run.h"
#include "session.h"

enum {
	KEYS_BYTES = 256,
	RUNS_BYTES = PROTOCOL_MAX - SESSION_LIST_BYTES - KEYS_BYTES
}; /* KEYS: what the reply has beside both lists */

static json_t *run_to_json(const struct served_run *r, const struct connection *c, double now)
{
	return json_pack("{ss ss sI sI ss ss* ss sI sb}", "run", r->id, "profile", r->profile->name, "uid",
			 (json_int_t)r->peer.uid, "pid", (json_int_t)r->peer.pid, "comm", r->peer.comm, "program",
			 c->takes_additions ? r->program : NULL, "state", r->run.started ? "running" : "starting",
			 "age_ms", (json_int_t)(now - r->asked_ms), "mine", r->peer.uid == c->peer.uid);
}

/* The oldest, as many as fit into the reply; *more: how many others there are. */
static json_t *list_visible_runs(const struct connection *c, json_int_t *more)
{
	double                   now   = clock_ms(CLOCK_MONOTONIC);
	json_t                  *runs  = json_array();
	size_t                   bytes = 0;
	const struct served_run *r;

	TAILQ_FOREACH(r, &c->server->runs, link) {
		json_t *one = peer_is_shown_to(&r->peer, c->peer.uid) ? run_to_json(r, c, now) : NULL;

		bytes += one ? json_dumpb(one, NULL, 0, JSON_COMPACT) + 1 : 0;
		if (one && json_array_size(runs) < PROTOCOL_LIST_MAX && bytes <= RUNS_BYTES)
			json_array_append(runs, one);
		else
			*more += one != NULL;
		json_decref(one);
	}
	return runs;
}

int gate_handle_list(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	json_int_t more  = 0;

	(void)request, (void)why;
	json_object_set_new(reply, "runs", list_visible_runs(c, &more));
	json_object_set_new(reply, "left_out", json_integer(more));
	json_object_set_new(reply, "sessions", sessions_to_json(c->server, c));
	return GATE_ANSWERED;
}
