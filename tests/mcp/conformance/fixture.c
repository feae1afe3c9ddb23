#include "fixture.h"

#include <stdlib.h>

const json_t *fixture_capabilities(const struct call *c)
{
	return json_object_get(json_object_get(c->params, "_meta"), META_CAPABILITIES);
}

bool fixture_can(const struct call *c, const char *capability)
{
	return json_is_object(json_object_get(fixture_capabilities(c), capability));
}

void fixture_incapable(struct call *c, const char *what, json_t *needed)
{
	struct rpc_error e;

	(void)rpc_error_set(&e, RPC_MISSING_CAPABILITY, "This needs a client that declares %s", what);
	e.data = json_pack("{s:o}", "requiredCapabilities", needed);
	call_answer_failure_status(c, &e, 400);
}

void fixture_invalid(struct call *c, const char *why)
{
	struct rpc_error e;

	(void)rpc_error_set(&e, RPC_INVALID_PARAMS, "%s", why);
	call_answer_failure(c, &e);
}

void fixture_cacheable(struct call *c, json_t *result)
{
	if (revision_is_modern(c->revision)) {
		json_object_set_new(result, "ttlMs", json_integer(60000));
		json_object_set_new(result, "cacheScope", json_string("public"));
	}
	call_answer_result(c, result);
}

const char *fixture_text(const json_t *arguments, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(arguments, name));

	return text ? text : otherwise;
}

/* --- steps --- */

struct steps {
	struct loop_timer timer;
	struct loop      *loop;
	struct call      *call;
	int64_t           ms;
	int               n;
	bool            (*step)(struct call *c, int n);
};

static void steps_free(struct steps *s)
{
	loop_timer_clear(s->loop, &s->timer);
	free(s);
}

static void steps_stop(struct call *c)
{
	steps_free(c->work);
}

static void steps_due(void *owner)
{
	struct steps *s = owner;

	if (s->step(s->call, s->n++))
		steps_free(s);
	else
		loop_timer_set(s->loop, &s->timer, s->ms);
}

void fixture_steps(struct call *c, int64_t ms, bool (*step)(struct call *c, int n))
{
	struct steps *s = calloc(1, sizeof *s);

	if (!s) {
		tool_answer_text(c, "No memory", true);
		return;
	}
	*s        = (struct steps){ .loop = &c->mcp->loop, .call = c, .ms = ms, .step = step };
	s->timer  = (struct loop_timer){ .due = steps_due, .owner = s };
	c->work   = s;
	c->cancel = steps_stop;
	steps_due(s);
}
