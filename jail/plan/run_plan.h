/*
 * run_plan.h - what a request to run something becomes: limits, mounts, arguments.
 *
 * Everything that can be wrong with a request is found here, before anything
 * is started. A request can set limits up to the profile's ceilings; it names no
 * path of the host.
 */
#pragma once
#include "client_protocol.h"
#include "exec_args.h"
#include "mount_plan.h"
#include "net_config.h"
#include "net_listeners.h"
#include "profile_set.h"
#include "program_env.h"
#include "program_text.h"

struct run_plan {
	const struct served_profile *profile;
	struct limits                limits;
	char                        *shown[MOUNT_SHOWN_MAX]; /* "workspace/NAME" */
	size_t                       shown_len;
	struct exec_args             exec_args; /* fd: -1 until it is sealed */
	char                        *exec_text;
	struct program_text          code;
	struct net_rules            *net_rules; /* net_rules_size() bytes; NULL: it has no network */
	struct net_listeners         listeners; /* with net_rules; used for a private run */
	struct net_config            net;       /* of a private run only: each profile of a service has its own */
	json_t                      *resolve_args; /* of the mode resolve: the index, then the request's packages */
	int                          own_code;  /* of a session and of an empty program: a memory file with brig's own text; else -1 */
};

#define RUN_PLAN_NONE ((struct run_plan){ .exec_args = EXEC_ARGS_NONE, .net = NET_CONFIG_NONE, .own_code = -1 })

/* fds: those of the request, borrowed. places: where a private run finds brig-proxy. On failure nothing is left to free. */
must_use int run_plan_build(struct run_plan *ret, const struct brig_paths *places, const struct served_profile *profile,
			    const struct protocol_request *request, const int *fds, struct denial *why);
void         run_plan_done(struct run_plan *p);

/*
 * Two checks that runs and calls in sessions share. The first takes the limits that were asked for into *l; none may be
 * above its ceiling. The second builds the environment; program_env_done() must follow, also after a failure.
 */
must_use int run_plan_apply_limits(struct limits *l, const struct served_profile *profile, const json_t *asked,
				   struct denial *why);
must_use int run_plan_build_call_env(struct program_env *env, const struct limits *limits, const json_t *added,
				     struct denial *why);
#define scoped_run_plan scoped(run_plan_done) struct run_plan
