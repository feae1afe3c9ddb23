#include "elicitation.h"

#include "ask_hosts.h"
#include "yes_form.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROUND_MAX = 8 }; /* questions in one result */

/* --- the question --- */

bool elicitation_is_offered(const json_t *capabilities)
{
	const json_t *offered = json_object_get(capabilities, "elicitation");

	return json_is_object(offered) && (json_object_size(offered) == 0 || json_object_get(offered, "form"));
}

bool elicitation_is_possible(const struct call *c)
{
	if (revision_is_modern(c->revision))
		return elicitation_is_offered(json_object_get(json_object_get(c->params, "_meta"), META_CAPABILITIES));
	return c->revision >= REVISION_2025_06_18 && c->channel->elicits;
}

/* A form with one choice, which is preset to no. */
static json_t *consent_form_of(const struct consent *question)
{
	json_t *choice = json_pack("{ss ss s[sss] s[sss] ss}", "type", "string", "title", "Allow it?", "enum", "no",
				   "once", "run", "enumNames", "No", "Yes, this call",
				   "Yes, this tool, as often as this program calls it", "default", "no");

	return json_pack("{ss s{ss s{so} s[s]}}", "message", question->text, "requestedSchema", "type", "object",
			 "properties", "answer", choice, "required", "answer");
}

/* false: this is not a valid answer. To decline or to cancel counts as no. */
static bool parse_consent(const json_t *response, enum consent_answer *ret)
{
	const char *action = json_string_value(json_object_get(response, "action"));
	const char *answer = json_string_value(json_object_get(json_object_get(response, "content"), "answer"));

	*ret = CONSENT_NO;
	if (!action)
		return false;
	if (strcmp(action, "accept") != 0)
		return strcmp(action, "decline") == 0 || strcmp(action, "cancel") == 0;
	if (!answer)
		return false;
	if (strcmp(answer, "once") == 0)
		*ret = CONSENT_ONCE;
	else if (strcmp(answer, "run") == 0)
		*ret = CONSENT_RUN;
	return *ret != CONSENT_NO || strcmp(answer, "no") == 0;
}

/* --- sending the question --- */

static void elicitation_cancel_sent(struct execution *x)
{
	struct elicitation *e  = &x->elicitation;
	json_t             *id = json_string(e->request.id);

	client_request_detach(&e->request, x->mcp);
	if (e->call)
		call_notify(
			e->call, "notifications/cancelled",
			json_pack("{sO ss}", "requestId", id, "reason", "the program does not wait for it any more"));
	json_decref(id);
}

void elicitation_withdraw(struct execution *x)
{
	loop_timer_clear(&x->mcp->loop, &x->question_timer);
	if (client_request_waits(&x->elicitation.request))
		elicitation_cancel_sent(x);
}

void elicitation_send_open_questions(struct execution *x)
{
	struct waiter  *a;
	struct consent  open[BRIDGE_UNDER_WAY];
	size_t          n        = tool_bridge_list_consents(&x->tools.bridge, open, ARRAY_LEN(open));
	bool            attended = false, is_open = false;

	for (size_t i = 0; i < n; i++)
		is_open |= open[i].number == x->elicitation.number;
	if (client_request_waits(&x->elicitation.request) && !is_open)
		elicitation_cancel_sent(x);
	if (!n)
		return;
	TAILQ_FOREACH(a, &x->waiters, link) {
		if (!a->asks)
			continue;
		attended = true;
		if (a->asks(a->owner, x)) /* a may be freed by now */
			return;
	}
	while (attended && tool_bridge_list_consents(&x->tools.bridge, open, 1))
		tool_bridge_set_consent(&x->tools.bridge, open[0].number, CONSENT_CANNOT,
				    "this client does not announce that it can ask one (elicitation)");
}

/* --- legacy: a request --- */

void elicitation_detach_call(struct call *c, struct execution *x)
{
	if (x->elicitation.call == c)
		x->elicitation.call = NULL;
}

static void elicitation_on_consent(struct client_request *r, struct mcp *m, const struct rpc_message *response)
{
	const struct elicitation *e = (const struct elicitation *)r;
	struct execution         *x = e->execution;
	enum consent_answer       answer;

	if (response->error)
		tool_bridge_set_consent(&x->tools.bridge, e->number, CONSENT_CANNOT,
					"this client has refused to ask one");
	else
		tool_bridge_set_consent(&x->tools.bridge, e->number,
				    parse_consent(response->result, &answer) ? answer : CONSENT_NO, NULL);
	loop_timer_set(&m->loop, &x->question_timer, 0); /* the next question */
}

void elicitation_send(struct call *c, struct execution *x)
{
	struct consent open[1];

	if (client_request_waits(&x->elicitation.request) || !tool_bridge_list_consents(&x->tools.bridge, open, 1))
		return;
	x->elicitation = (struct elicitation){
		.request = { .answered = elicitation_on_consent }, .execution = x, .call = c, .number = open[0].number
	};
	client_request_send(&x->elicitation.request, c, "elicitation/create", consent_form_of(&open[0]));
}

/* --- modern: a result --- */

static json_t *round_result(struct call *c, struct execution *x, json_t *requests)
{
	client_request_make_secret(x->round, sizeof x->round);
	json_decref(x->round_of);
	x->round_of = json_incref(c->params);
	return json_pack("{ss so ss}", "resultType", "input_required", "inputRequests", requests, "requestState",
			 x->round);
}

json_t *elicitation_make_result(struct call *c, struct execution *x)
{
	struct consent open[ROUND_MAX];
	size_t         n        = tool_bridge_list_consents(&x->tools.bridge, open, ROUND_MAX);
	json_t        *requests = json_object();

	for (size_t i = 0; i < n; i++) {
		char    key[32];
		json_t *form = consent_form_of(&open[i]);

		snprintf(key, sizeof key, "tool-%" PRIu64, open[i].number);
		json_object_set_new(form, "mode", json_string("form"));
		json_object_set_new(requests, key,
				    json_pack("{ss so}", "method", "elicitation/create", "params", form));
	}
	return round_result(c, x, requests);
}

json_t *elicitation_make_host_result(struct call *c, struct execution *x)
{
	json_t *form = hosts_consent_form(x->host);

	json_object_set_new(form, "mode", json_string("form"));
	return round_result(c, x, json_pack("{s{ss so}}", "host", "method", "elicitation/create", "params", form));
}

void elicitation_apply_consents(struct execution *x, const json_t *responses)
{
	const char         *key;
	json_t             *response;
	enum consent_answer answer;
	uint64_t            number;

	if (*x->host) /* what is no answer is a no: the client would be asked for ever */
		hosts_set_consent(x->mcp, x->profile, x->host,
				  yes_form_says_yes(json_object_get(responses, "host")));
	*x->host = 0;
	json_object_foreach((json_t *)responses, key, response) {
		if (sscanf(key, "tool-%" SCNu64, &number) != 1)
			continue;
		if (parse_consent(response, &answer))
			tool_bridge_set_consent(&x->tools.bridge, number, answer, NULL);
		else
			tool_bridge_deny_at_second_unclear_consent(&x->tools.bridge, number);
	}
}
