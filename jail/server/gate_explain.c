/* gate_explain.c - what a profile sets, and what this client may ask for */
#include "gate.h"
#include "package_list.h"

static json_t *names_or_json_null(const json_t *list)
{
	return list ? json_incref((json_t *)list) : json_null();
}

static json_t *list_packages_of_profile(const struct server *d, const struct served_profile *p)
{
	return p->packages ? json_incref(p->packages) : package_list_read(&d->places, p->profile.rootfs);
}

int gate_explain(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
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
	if (p->profile.net)
		json_object_set_new(reply, "network", net_policy_to_json(p->profile.net, &p->profile.network));
	json_object_set_new(reply, "modules", names_or_json_null(p->profile.modules));
	json_object_set_new(reply, "calls", names_or_json_null(p->profile.calls));
	json_object_set_new(reply, "packages", list_packages_of_profile(c->server, p));
	return GATE_ANSWERED;
}
