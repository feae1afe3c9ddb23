/* gate_tools.c - a client reports the calls of tools that its run makes: for the clock, the audit and the figures; nothing checks it */
#include "attempt.h"
#include "gate.h"
#include "served_run.h"
#include "session.h"

#include <string.h>

enum { CALLS_MAX = 1000 /* of one run or call in a session; the audit gets no more of them */, DIGEST_HEX = 64 };

/* How many calls of this run were reported. A client may report the last calls when the run has ended already. */
static uint32_t *count_of(struct connection *c, struct served_run *r, struct session_call *call, const char *id)
{
	if (call)
		return &call->calls;
	if (r)
		return &r->calls;
	for (size_t i = 0; i < ARRAY_LEN(c->ended); i++)
		if (*c->ended[i].id && strcmp(c->ended[i].id, id) == 0)
			return &c->ended[i].calls;
	return NULL;
}

/* The client may send any text; it becomes one of three, as the outcome is a label of a figure. */
static enum call_outcome outcome_of(const char *verdict)
{
	if (strcmp(verdict, "ok") == 0)
		return CALL_OK;
	return strcmp(verdict, "denied") == 0 ? CALL_DENIED : CALL_FAILED;
}

struct calls {
	struct protocol_call of[PROTOCOL_CALLS_MAX];
	size_t               n;
};

static int decode(const json_t *object, struct protocol_call *ret, struct err *e)
{
	*ret = (struct protocol_call){ NULL, NULL, NULL };
	if (fields_decode(protocol_call_fields, object, ret, e) < 0)
		return -1;
	if (!ret->name || !ret->verdict || !ret->args_sha256)
		return err_set(e, ERR_BAD_SPEC, "name, verdict and args_sha256 must be there");
	return strspn(ret->args_sha256, "0123456789abcdef") == DIGEST_HEX && !ret->args_sha256[DIGEST_HEX]
		       ? 0 : err_set(e, ERR_BAD_SPEC, "args_sha256 is no digest; it has %d hexadecimal digits", DIGEST_HEX);
}

static int take_calls(struct calls *ret, const json_t *calls, struct denial *why)
{
	struct err e;

	for (ret->n = 0; ret->n < json_array_size(calls); ret->n++)
		if (decode(json_array_get(calls, ret->n), &ret->of[ret->n], &e) < 0)
			return deny_setting(why, DENIAL_bad_field, "calls", &e);
	return 0;
}

static struct session_call *find_call(const struct connection *c, const char *id)
{
	struct session_call *call = session_call_find(c->server, id, c->peer.uid);

	return call && call->connection == c && call->with_tools ? call : NULL;
}

int gate_tools(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct served_run *r     = served_run_find(c->server, request->run);
	struct served_run *own   = r && r->connection == c && r->with_tools ? r : NULL;
	struct session_call *call = find_call(c, request->run);
	uint32_t          *count = count_of(c, own, call, request->run);
	struct calls       calls;

	if (!count)
		return deny(why, DENIAL_not_found, "run", "this connection has no run \"%.40s\" with tools", request->run);
	if (take_calls(&calls, request->calls, why) < 0)
		return -1;
	if (call)
		session_call_pause_clock(call, request->is_waiting);
	if (own)
		served_run_pause_clock(own, request->is_waiting);
	for (size_t i = 0; i < calls.n; i++)
		c->server->counts.calls[outcome_of(calls.of[i].verdict)]++;
	for (size_t i = 0; i < calls.n && *count < CALLS_MAX; i++, ++*count)
		attempt_called(c, request->run, &calls.of[i]);
	json_object_set_new(reply, "run", json_string(request->run));
	return GATE_ANSWERED;
}
