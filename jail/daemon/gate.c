#include "gate.h"

/* Everything that a stranger can ask of us. What each takes is said in client_protocol.def and client_request.c. */
/* clang-format off */
static gate_fn *const rows[REQUEST_COUNT] = {
	[REQUEST_hello]   = gate_hello,
	[REQUEST_run]     = gate_run,
	[REQUEST_exec]    = gate_run, /* the same but for what is executed */
	[REQUEST_cancel]  = gate_cancel,
	[REQUEST_list]    = gate_list,
	[REQUEST_stats]   = gate_stats,
	[REQUEST_metrics] = gate_metrics,
	[REQUEST_explain] = gate_explain,
	[REQUEST_reload]  = gate_reload,
};
/* clang-format on */

/* A client whose access was withdrawn keeps its runs, and may cancel them. */
static int check_access(const struct connection *c, struct denial *why)
{
	return c->may ? 0 : deny(why, DENIAL_denied, NULL, "user %u may not use this service any more", c->peer.uid);
}

int gate_serve(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	if (request->kind != REQUEST_cancel && check_access(c, why) < 0)
		return -1;
	return rows[request->kind](c, request, fds, n, why);
}

/* The same words for both: who may not use it need not learn whether it is there. */
const struct served_profile *gate_profile(struct connection *c, const char *name, struct denial *why)
{
	const struct served_profile *p;
	struct err                   e;

	if (check_access(c, why) < 0)
		return NULL;
	if (!access_allows(c->may, name)) {
		deny(why, DENIAL_unknown_profile, NULL, "profile \"%.63s\" is none that you may use", name);
		return NULL;
	}
	p = profile_set_find(&c->door->profiles, name, &e);
	if (!p)
		deny_err(why, DENIAL_unknown_profile, NULL, &e);
	return p;
}

static json_t *bound(uint64_t value)
{
	return value ? json_integer((json_int_t)value) : json_null();
}

json_t *gate_quota_json(const struct quota_limits *quota)
{
	return json_pack("{so so so}", "runs", bound(quota->runs), "memory_bytes", bound(quota->memory_bytes), "runs_per_minute",
			 bound(quota->runs_per_minute));
}
