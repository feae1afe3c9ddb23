#include "resume.h"

#include "elicitation.h"
#include "waiter.h"
#include "executions.h"

#include <string.h>

/* Was the state given out for this tool and these arguments? */
static bool is_same(const struct call *c, const struct execution *x)
{
	return json_equal(json_object_get(c->params, "name"), json_object_get(x->round_of, "name")) &&
	       json_equal(json_object_get(c->params, "arguments"), json_object_get(x->round_of, "arguments"));
}

static struct execution *find(const struct call *c)
{
	const json_t     *state = json_object_get(c->params, "requestState");
	struct execution *x;

	TAILQ_FOREACH(x, &c->mcp->executions->all, link)
		if (*x->round && json_is_string(state) && strcmp(x->round, json_string_value(state)) == 0 && strcmp(x->principal, c->channel->principal) == 0)
			break;
	return x && is_same(c, x) ? x : NULL;
}

static void on_ended(void *owner, struct execution *x)
{
	(void)owner, (void)x;
}

/* Takes away a handle that only the question needed, so that the run ends if this client cancels now, as with any other call. */
static void go_on(struct call *c, struct execution *x)
{
	struct waiter meanwhile = { .ended = on_ended };

	execution_add_waiter(x, &meanwhile);
	*x->round = 0;
	if (x->is_lent)
		*x->handle = 0;
	x->is_lent = false;
	elicitation_take_answers(x, json_object_get(c->params, "inputResponses"));
	attend(c, x, c->mcp->settings->yield_after_ms);
	execution_leave(x, &meanwhile);
}

void resume_call(struct call *c)
{
	struct execution *x = find(c);
	struct rpc_error  e;

	if (x) {
		go_on(c, x);
		return;
	}
	rpc_error_set(&e, RPC_INVALID_PARAMS, "requestState: no question of this name is open; call the tool again without it");
	call_failure(c, &e);
}
