/*
 * gate_tools.c - a client reports the calls of tools that its run makes: for the clock, the audit and the figures;
 * nothing checks it
 */
#include "attempt.h"
#include "gate.h"
#include "served_run.h"
#include "session.h"

#include <string.h>

enum { CALLS_MAX = 1000 /* of one run or call in a session; the audit gets no more of them */, DIGEST_HEX = 64 };

/* How many calls of this run were reported. A client may report the last calls when the run has ended already. */
static uint32_t *find_call_count(struct connection *c, struct served_run *r, struct session_call *call, const char *id)
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

struct calls {
	struct protocol_call of[PROTOCOL_CALLS_MAX];
	size_t               n;
};

static int parse_tool_calls(struct calls *ret, const json_t *list, struct err *e)
{
	for (ret->n = 0; ret->n < json_array_size(list); ret->n++) {
		struct protocol_call *call = &ret->of[ret->n];

		*call = (struct protocol_call){ NULL, NULL, NULL };
		if (fields_decode(protocol_call_fields, json_array_get(list, ret->n), call, e) < 0)
			return -1;
		if (!call->name || !call->verdict || !call->args_sha256)
			return err_set(e, ERR_BAD_SPEC, "name, verdict and args_sha256 must be there");
		if (strspn(call->args_sha256, "0123456789abcdef") != DIGEST_HEX || call->args_sha256[DIGEST_HEX])
			return err_set(e, ERR_BAD_SPEC, "args_sha256 must have %d hexadecimal digits",
				       DIGEST_HEX);
	}
	return 0;
}

int gate_handle_tools(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct served_run   *r    = served_run_find(c->server, request->run);
	struct session_call *call = session_call_find(c->server, request->run, c->peer.uid);
	struct served_run   *own_run  = r && r->connection == c && r->with_tools ? r : NULL;
	struct session_call *own_call = call && call->connection == c && call->with_tools ? call : NULL;
	uint32_t            *count    = find_call_count(c, own_run, own_call, request->run);
	uint64_t            *outcomes = c->server->counts.calls;
	struct calls         calls;
	struct err           e;

	if (!count)
		return deny(why, DENIAL_not_found, "run", "this connection has no run \"%.40s\" with tools",
			    request->run);
	if (parse_tool_calls(&calls, request->calls, &e) < 0)
		return deny_setting(why, DENIAL_bad_field, "calls", &e);
	if (own_call)
		session_call_set_waiting(own_call, request->is_waiting);
	if (own_run)
		served_run_set_waiting(own_run, request->is_waiting);
	/* The client may send any text; it becomes one of three, as the outcome is a label of a figure. */
	for (size_t i = 0; i < calls.n; i++) {
		const char *verdict = calls.of[i].verdict;
		bool        is_ok = strcmp(verdict, "ok") == 0, is_denied = strcmp(verdict, "denied") == 0;

		outcomes[is_ok ? CALL_OK : is_denied ? CALL_DENIED : CALL_FAILED]++;
	}
	for (size_t i = 0; i < calls.n && *count < CALLS_MAX; i++, ++*count)
		attempt_write_tool_call(c, request->run, &calls.of[i]);
	json_object_set_new(reply, "run", json_string(request->run));
	return GATE_ANSWERED;
}
