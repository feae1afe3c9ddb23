/* gate_cancel.c - ends a run or a call, by its id */
#include "gate.h"
#include "queue.h"
#include "served_run.h"
#include "session.h"

int gate_handle_cancel(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	static const enum exit_reason
		reasons[] = { [CANCEL_cancelled] = EXIT_cancelled, [CANCEL_output_limit] = EXIT_output_limit };
	struct served_run            *r         = served_run_find(c->server, request->run);
	struct session_call          *call      = session_call_find(c->server, request->run, c->peer.uid);

	if (call)
		session_call_interrupt_or_kill(call, reasons[request->reason]);
	else if (r && peer_is_shown_to(&r->peer, c->peer.uid))
		run_request_cancel(&r->run, reasons[request->reason]);
	else if (!queue_cancel_run(c->server, request->run, c->peer.uid))
		return deny(why, DENIAL_not_found, "run", "you have no run \"%.40s\"", request->run);
	json_object_set_new(reply, "run", json_string(request->run));
	return GATE_ANSWERED;
}
