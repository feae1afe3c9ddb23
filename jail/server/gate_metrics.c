/* gate_metrics.c - what the runs of one profile have cost, for a monitoring system */
#include "gate.h"

int gate_handle_metrics(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	const struct served_profile *profile = gate_find_allowed_profile(c, request->profile, why);

	if (!profile)
		return -1;
	json_object_set_new(reply, "profile", json_string(profile->name));
	figures_put_profile_json(&c->server->figures, profile->name, reply);
	return GATE_ANSWERED;
}
