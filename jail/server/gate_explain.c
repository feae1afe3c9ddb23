/* gate_explain.c - what a profile sets, and what this client may ask for */
#include "gate.h"
#include "package_list.h"

int gate_handle_explain(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	const struct served_profile *p = gate_find_allowed_profile(c, request->profile, why);

	if (!p)
		return -1;
	json_object_set_new(reply, "profile", json_string(p->name));
	json_object_set_new(reply, "rootfs", json_string(p->profile.rootfs));
	json_object_set_new(reply, "policy", json_string(p->profile.policy));
	json_object_set_new(reply, "limits", limits_to_json(&p->profile.limits));
	json_object_set_new(reply, "ceilings", limits_to_json(&p->profile.ceilings));
	json_object_set_new(reply, "quota", gate_quota_to_json(&c->access_rule->quota));
	json_object_set_new(reply, "filter_sha256", *p->filter_sha256 ? json_string(p->filter_sha256) : json_null());
	if (p->profile.net && json_object_get(p->profile.source, "network"))
		json_object_set_new(reply, "network", net_policy_to_json(p->profile.net, &p->profile.network));
	json_object_set_new(reply, "modules", json_pack("O?", p->profile.modules));
	json_object_set_new(reply, "calls", json_pack("O?", p->profile.calls));
	json_object_set_new(reply, "packages",
			    p->packages ? json_incref(p->packages)
					: package_list_read(&c->server->places, p->profile.rootfs));
	return GATE_ANSWERED;
}
