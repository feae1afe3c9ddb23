/* gate_list.c - the runs that this client may see: its user's own, or all */
#include "clock.h"
#include "gate.h"
#include "served_run.h"
#include "session.h"

static json_t *row(const struct served_run *r, const struct connection *c, double now)
{
	return json_pack("{ss ss sI sI ss ss sI sb}", "run", r->id, "profile", r->profile->name, "uid", (json_int_t)r->peer.uid, "pid",
			 (json_int_t)r->peer.pid, "comm", r->peer.comm, "state", r->run.started ? "running" : "starting", "age_ms",
			 (json_int_t)(now - r->asked_ms), "mine", r->peer.uid == c->peer.uid);
}

int gate_list(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	double             now   = clock_ms(CLOCK_MONOTONIC);
	json_t            *reply = protocol_reply(REQUEST_list, request->tag), *runs = json_array();
	json_int_t         more  = 0;
	struct served_run *r;

	(void)fds, (void)n, (void)why;
	TAILQ_FOREACH(r, &c->door->runs, link) {
		if (!peer_is_shown_to(&r->peer, c->peer.uid))
			continue;
		if (json_array_size(runs) < PROTOCOL_LIST_MAX)
			json_array_append_new(runs, row(r, c, now));
		else
			more++;
	}
	json_object_set_new(reply, "runs", runs);
	json_object_set_new(reply, "left_out", json_integer(more));
	json_object_set_new(reply, "sessions", session_list_json(c->door, c));
	connection_send(c, reply, NULL, 0);
	return 0;
}
