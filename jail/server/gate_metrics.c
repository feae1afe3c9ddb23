/* gate_metrics.c - what the runs of one profile have cost, for a monitoring system */
#include "gate.h"

int gate_metrics(struct connection *c, const struct protocol_request *request, struct denial *why)
{
	const struct served_profile *profile = gate_profile(c, request->profile, why);
	json_t                      *reply;

	if (!profile)
		return -1;
	reply = protocol_reply(REQUEST_metrics, request->tag);
	json_object_set_new(reply, "profile", json_string(profile->name));
	figures_put_json(&c->server->figures, profile->name, reply);
	connection_send(c, reply, NULL, 0);
	return 0;
}
