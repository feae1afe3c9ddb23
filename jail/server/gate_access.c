/* gate_access.c - what a client may use: checks for several requests */
#include "gate.h"

/* A client whose access was withdrawn keeps its runs, and may cancel them. */
int gate_check_access(const struct connection *c, struct denial *why)
{
	return c->access_rule ? 0
			      : deny(why, DENIAL_denied, NULL, "user %u may no longer use this service", c->peer.uid);
}

/* A client that may not use a profile gets the same answer whether or not the profile exists. */
const struct served_profile *gate_find_allowed_profile(struct connection *c, const char *name, struct denial *why)
{
	const struct served_profile *p;
	struct err                   e;

	if (gate_check_access(c, why) < 0)
		return NULL;
	if (!access_allows(c->access_rule, name)) {
		deny(why, DENIAL_unknown_profile, NULL, "you may not use a profile \"%.63s\"", name);
		return NULL;
	}
	p = profile_set_find(&c->server->profiles, name, &e);
	if (!p)
		deny_err(why, DENIAL_unknown_profile, NULL, &e);
	return p;
}

static json_t *limit_or_null(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

json_t *gate_quota_to_json(const struct quota_limits *quota)
{
	return json_pack("{so so so so sI}",
			 "runs", limit_or_null(quota->runs),
			 "memory_bytes", limit_or_null(quota->memory_bytes),
			 "runs_per_minute", limit_or_null(quota->runs_per_minute),
			 "sessions", limit_or_null(quota->sessions),
			 "contexts", (json_int_t)quota->contexts);
}
