/* input.c - a call that ends with a question, and its answer that comes with another call (modern) */
#include "fixture.h"

#include <string.h>

json_t *input_elicitation(const char *message, const char *property, const char *type)
{
	return json_pack("{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s}},s:[s]}}}", "method", "elicitation/create", "params", "mode", "form", "message", message,
			 "requestedSchema", "type", "object", "properties", property, "type", type, "required", property);
}

json_t *input_sampling(const char *prompt, int max_tokens)
{
	return json_pack("{s:s,s:{s:[{s:s,s:{s:s,s:s}}],s:i}}", "method", "sampling/createMessage", "params", "messages", "role", "user", "content", "type",
			 "text", "text", prompt, "maxTokens", max_tokens);
}

json_t *input_roots(void)
{
	return json_pack("{s:s,s:{}}", "method", "roots/list", "params");
}

static const json_t *given(const struct call *c, const char *key)
{
	return json_object_get(json_object_get(c->params, "inputResponses"), key);
}

/* Declining is an answer: who asks again makes clients loop. */
const json_t *input_elicited(const struct call *c, const char *key)
{
	const json_t *said   = given(c, key);
	const char   *action = fixture_text(said, "action", "");

	if (!strcmp(action, "decline") || !strcmp(action, "cancel"))
		return said;
	return !strcmp(action, "accept") && json_is_object(json_object_get(said, "content")) ? said : NULL;
}

const char *input_elicited_text(const struct call *c, const char *key, const char *property)
{
	const json_t *said = input_elicited(c, key);

	if (!said)
		return NULL;
	return strcmp(fixture_text(said, "action", ""), "accept") ? "nobody" : fixture_text(json_object_get(said, "content"), property, NULL);
}

const json_t *input_sampled(const struct call *c, const char *key)
{
	const json_t *content = json_object_get(given(c, key), "content");

	return json_is_object(content) || json_is_array(content) ? given(c, key) : NULL;
}

const json_t *input_rooted(const struct call *c, const char *key)
{
	return json_is_array(json_object_get(given(c, key), "roots")) ? given(c, key) : NULL;
}

void input_ask(struct call *c, json_t *requests, json_t *state)
{
	json_t *result = json_pack("{s:s,s:o}", "resultType", "input_required", "inputRequests", requests);

	if (state)
		json_object_set_new(result, "requestState", state_seal(c, state));
	json_decref(state);
	call_answer_result(c, result);
}
