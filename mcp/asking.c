#include "asking.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { ROUND_MAX = 8 }; /* questions in one result */

/* --- the question --- */

bool asking_is_offered(const json_t *capabilities)
{
	const json_t *offered = json_object_get(capabilities, "elicitation");

	return json_is_object(offered) && (json_object_size(offered) == 0 || json_object_get(offered, "form"));
}

bool asking_can(const struct call *c)
{
	if (revision_is_modern(c->revision))
		return asking_is_offered(json_object_get(json_object_get(c->params, "_meta"), META_CAPABILITIES));
	return c->revision >= REVISION_2025_06_18 && c->channel->elicits;
}

/* A form with one choice, which is preset to no. */
static json_t *form_of(const struct consent *question)
{
	json_t *choice = json_pack("{ss ss s[sss] s[sss] ss}", "type", "string", "title", "Allow it?", "enum", "no", "once", "run", "enumNames", "No",
				   "Yes, this call", "Yes, this tool, as often as this program calls it", "default", "no");

	return json_pack("{ss s{ss s{so} s[s]}}", "message", question->text, "requestedSchema", "type", "object", "properties", "answer", choice, "required",
			 "answer");
}

/* false: this is not a valid answer. To decline or to cancel counts as no. */
static bool read_answer(const json_t *said, enum consent_answer *ret)
{
	const char *action = json_string_value(json_object_get(said, "action"));
	const char *answer = json_string_value(json_object_get(json_object_get(said, "content"), "answer"));

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

static void make_secret(char *ret, size_t digits)
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof raw, 0) != sizeof raw)
		abort(); /* an id that can be guessed is a consent that can be forged */
	for (size_t i = 0; i < sizeof raw && 2 * i + 2 <= digits; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

/* --- sending the question --- */

static bool is_open(const struct execution *x, uint64_t number)
{
	struct consent open[BRIDGE_UNDER_WAY];
	size_t         n = tool_bridge_consents(&x->tools.bridge, open, ARRAY_LEN(open));

	for (size_t i = 0; i < n; i++)
		if (open[i].number == number)
			return true;
	return false;
}

static void take_back(struct elicitation *e)
{
	struct mcp *m = e->execution->mcp;

	TAILQ_REMOVE(&m->elicitations, e, link);
	if (e->call)
		call_notify(e->call, "notifications/cancelled", json_pack("{ss ss}", "requestId", e->id, "reason", "the program does not wait for it any more"));
	free(e);
}

/* all: false: only those whose question is not open any more. */
static void take_back_of(struct execution *x, bool all)
{
	struct elicitation *e, *next;

	for (e = TAILQ_FIRST(&x->mcp->elicitations); e; e = next) {
		next = TAILQ_NEXT(e, link);
		if (e->execution == x && (all || !is_open(x, e->number)))
			take_back(e);
	}
}

void asking_forget(struct execution *x)
{
	loop_timer_clear(&x->mcp->loop, &x->asks);
	take_back_of(x, true);
}

static void deny_all(struct execution *x, const char *why)
{
	struct consent open[1];

	while (tool_bridge_consents(&x->tools.bridge, open, 1))
		tool_bridge_consent(&x->tools.bridge, open[0].number, CONSENT_CANNOT, why);
}

void asking_look(struct execution *x)
{
	struct attendant *a;
	struct consent    open[1];
	bool              attended = false;

	take_back_of(x, false);
	if (!tool_bridge_consents(&x->tools.bridge, open, 1))
		return;
	TAILQ_FOREACH(a, &x->attendants, link) {
		if (!a->asks)
			continue;
		attended = true;
		if (a->asks(a->owner, x)) /* a may be freed by now */
			return;
	}
	if (attended)
		deny_all(x, "this client does not say that it can ask one (elicitation)");
}

/* --- legacy: a request --- */

void asking_call_ends(struct call *c)
{
	struct elicitation *e;

	TAILQ_FOREACH(e, &c->mcp->elicitations, link)
		if (e->call == c)
			e->call = NULL;
}

static bool is_asked(const struct execution *x)
{
	const struct elicitation *e;

	TAILQ_FOREACH(e, &x->mcp->elicitations, link)
		if (e->execution == x)
			return true;
	return false;
}

void asking_elicit(struct call *c, struct execution *x)
{
	struct consent      open[1];
	struct elicitation *e = is_asked(x) || !tool_bridge_consents(&x->tools.bridge, open, 1) ? NULL : calloc(1, sizeof *e);
	json_t             *id, *message;

	if (!e)
		return;
	*e = (struct elicitation){ .id = "brig-", .execution = x, .call = c, .number = open[0].number };
	make_secret(e->id + strlen(e->id), 32);
	TAILQ_INSERT_TAIL(&x->mcp->elicitations, e, link);
	id      = json_string(e->id);
	message = rpc_request(id, "elicitation/create", form_of(&open[0]));
	c->channel->ops->send(c->channel, c, message);
	json_decref(message);
	json_decref(id);
}

/* Only the principal that was asked can know the id. A response of another principal is ignored even if it has the id. */
static struct elicitation *find(struct mcp *m, const struct channel *ch, const json_t *id)
{
	struct elicitation *e;

	TAILQ_FOREACH(e, &m->elicitations, link)
		if (json_is_string(id) && strcmp(e->id, json_string_value(id)) == 0 && strcmp(e->execution->principal, ch->principal) == 0)
			break;
	return e;
}

void asking_take_response(struct mcp *m, const struct channel *ch, const struct rpc_message *message)
{
	struct elicitation *e = find(m, ch, message->id);
	struct execution   *x;
	enum consent_answer answer;
	uint64_t            number;

	if (!e)
		return;
	x      = e->execution;
	number = e->number;
	TAILQ_REMOVE(&m->elicitations, e, link);
	free(e);
	if (message->error)
		tool_bridge_consent(&x->tools.bridge, number, CONSENT_CANNOT, "this client has refused to ask one");
	else
		tool_bridge_consent(&x->tools.bridge, number, read_answer(message->result, &answer) ? answer : CONSENT_NO, NULL);
	loop_timer_set(&m->loop, &x->asks, 0); /* the next question */
}

/* --- modern: a result --- */

json_t *asking_result(struct call *c, struct execution *x)
{
	struct consent open[ROUND_MAX];
	size_t         n        = tool_bridge_consents(&x->tools.bridge, open, ROUND_MAX);
	json_t        *requests = json_object();

	for (size_t i = 0; i < n; i++) {
		char    key[32];
		json_t *form = form_of(&open[i]);

		snprintf(key, sizeof key, "tool-%" PRIu64, open[i].number);
		json_object_set_new(form, "mode", json_string("form"));
		json_object_set_new(requests, key, json_pack("{ss so}", "method", "elicitation/create", "params", form));
	}
	make_secret(x->round, sizeof x->round - 1);
	json_decref(x->round_of);
	x->round_of = json_incref(c->params);
	return json_pack("{ss so ss}", "resultType", "input_required", "inputRequests", requests, "requestState", x->round);
}

void asking_take_answers(struct execution *x, const json_t *responses)
{
	const char         *key;
	json_t             *said;
	enum consent_answer answer;
	uint64_t            number;

	json_object_foreach((json_t *)responses, key, said)
		if (sscanf(key, "tool-%" SCNu64, &number) == 1 && read_answer(said, &answer))
			tool_bridge_consent(&x->tools.bridge, number, answer, NULL);
}
