/* gate_run.c - a program or a command, in a jail */
#include "gate.h"

#include "clock.h"
#include "served_run.h"

int gate_run(struct connection *c, const struct protocol_request *request, int *fds, size_t n, struct denial *why)
{
	const struct served_profile *profile;
	scoped_run_plan              plan = { .words = WORDS_NONE };

	(void)n; /* as many as the request wants: protocol_parse() has counted them */
	if (c->door->is_ending)
		return deny(why, DENIAL_unavailable, NULL, "the service is about to end; ask again when it runs anew");
	profile = gate_profile(c, request->profile, why);
	/* first: to read the program of who may not run it would take the door from everybody else */
	if (!profile || quota_check(&c->door->quota, &c->may->quota, c->peer.uid, clock_ms(CLOCK_MONOTONIC), why) < 0 ||
	    run_plan_build(&plan, profile, request, fds, why) < 0)
		return -1;
	return served_run_start(c, request, &plan, fds, why);
}
