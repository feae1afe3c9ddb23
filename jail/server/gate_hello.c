/* gate_hello.c - which brig this is, and what this client may use */
#include "gate.h"

/* Only profiles that were read already: a private server reads one when a request names it. */
static json_t *list_allowed_profiles(const struct connection *c)
{
	const struct profile_set *set  = &c->server->profiles;
	json_t                   *list = json_array();

	for (size_t i = 0; i < set->n; i++)
		if (access_allows(c->access_rule, set->item[i]->name))
			json_array_append_new(list, json_pack("{ss ss}", "name", set->item[i]->name, "description",
							      set->item[i]->profile.description));
	return list;
}

int gate_handle_hello(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	(void)why;
	c->takes_additions |= json_object_get(request->source, "version") != NULL;
	json_object_set_new(reply, "version", json_integer(PROTOCOL_VERSION));
	json_object_set_new(reply, "brig", json_string(BRIG_VERSION));
	json_object_set_new(reply, "features",
			    json_pack("[sssssssssssss]", "report", "files", "tools", "sessions", "network", "terminals",
				      "denials", "programs", "written", "environment",
				      "renew", "principals", "paths"));
	json_object_set_new(reply, "profiles", list_allowed_profiles(c));
	json_object_set_new(reply, "quota", gate_quota_to_json(&c->access_rule->quota));
	return GATE_ANSWERED;
}
