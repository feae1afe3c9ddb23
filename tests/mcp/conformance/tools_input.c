/* tools_input.c - tools that need something from the client before they can answer (modern) */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

static void answer(struct call *c, const char *before, const char *text, const char *after)
{
	json_t *said = json_sprintf("%s%s%s", before, text, after);

	tool_answer_text(c, said ? json_string_value(said) : text, false);
	json_decref(said);
}

/* What may not be asked cannot be got: false, and the call has ended. */
static bool needs(struct call *c, const char *capability)
{
	if (fixture_can(c, capability))
		return true;
	fixture_incapable(c, capability, json_pack("{s:{}}", capability));
	return false;
}

static void name_wanted(struct call *c, const json_t *arguments)
{
	const char *name = input_elicited_text(c, "user_name", "name");

	(void)arguments;
	if (name)
		answer(c, "Hello, ", name, "!");
	else if (needs(c, "elicitation"))
		input_ask(c, json_pack("{s:o}", "user_name", input_elicitation("What is your name?", "name", "string")), NULL);
}

static void capital_wanted(struct call *c, const json_t *arguments)
{
	const json_t *said = input_sampled(c, "capital_question");

	(void)arguments;
	if (said)
		answer(c, "", fixture_text(json_object_get(said, "content"), "text", "not a text"), "");
	else if (needs(c, "sampling"))
		input_ask(c, json_pack("{s:o}", "capital_question", input_sampling("What is the capital of France?", 100)), NULL);
}

static void roots_wanted(struct call *c, const json_t *arguments)
{
	const json_t *said = input_rooted(c, "client_roots");
	char         *text = said ? json_dumps(json_object_get(said, "roots"), JSON_COMPACT) : NULL;

	(void)arguments;
	if (text)
		answer(c, "Roots: ", text, "");
	else if (needs(c, "roots"))
		input_ask(c, json_pack("{s:o}", "client_roots", input_roots()), NULL);
	free(text);
}

/* An answer without the state that belongs to it is none. */
static void state_wanted(struct call *c, const json_t *arguments)
{
	json_t *state;

	(void)arguments;
	if (state_open(c, &state) < 0)
		return;
	if (state && input_elicited(c, "confirm"))
		tool_answer_text(c, "state-ok", false);
	else if (needs(c, "elicitation"))
		input_ask(c, json_pack("{s:o}", "confirm", input_elicitation("Please confirm", "ok", "boolean")), json_pack("{s:s}", "asked", "confirm"));
	json_decref(state);
}

static void three_wanted(struct call *c, const json_t *arguments)
{
	const char *name = input_elicited_text(c, "user_name", "name");
	json_t     *state;

	(void)arguments;
	if (state_open(c, &state) < 0)
		return;
	if (state && name && input_sampled(c, "greeting") && input_rooted(c, "client_roots"))
		answer(c, "All three came, ", name, "");
	else if (needs(c, "elicitation") && needs(c, "sampling") && needs(c, "roots"))
		input_ask(c,
			  json_pack("{s:o,s:o,s:o}", "user_name", input_elicitation("What is your name?", "name", "string"), "greeting",
				    input_sampling("Generate a greeting", 50), "client_roots", input_roots()),
			  json_pack("{s:s}", "asked", "three"));
	json_decref(state);
}

/* The name of the first round comes back in the state of the second. */
static void rounds(struct call *c, const json_t *state)
{
	const char *name = fixture_text(state, "name", NULL), *first = input_elicited_text(c, "step1", "name"), *color = input_elicited_text(c, "step2", "color");

	if (name && color)
		answer(c, name, " likes ", color);
	else if (!needs(c, "elicitation"))
		return;
	else if (state && (name || first))
		input_ask(c, json_pack("{s:o}", "step2", input_elicitation("Step 2: What is your favorite color?", "color", "string")),
			  json_pack("{s:s}", "name", name ? name : first));
	else
		input_ask(c, json_pack("{s:o}", "step1", input_elicitation("Step 1: What is your name?", "name", "string")), json_object());
}

static void rounds_wanted(struct call *c, const json_t *arguments)
{
	json_t *state;

	(void)arguments;
	if (state_open(c, &state) < 0)
		return;
	rounds(c, state);
	json_decref(state);
}

static void allowed_wanted(struct call *c, const json_t *arguments)
{
	json_t *requests = json_object();

	(void)arguments;
	if (input_elicited(c, "user_name") || input_sampled(c, "greeting") || input_rooted(c, "client_roots")) {
		tool_answer_text(c, "Got what this client can give", false);
		json_decref(requests);
		return;
	}
	if (fixture_can(c, "elicitation"))
		json_object_set_new(requests, "user_name", input_elicitation("What is your name?", "name", "string"));
	if (fixture_can(c, "sampling"))
		json_object_set_new(requests, "greeting", input_sampling("Generate a greeting", 50));
	if (fixture_can(c, "roots"))
		json_object_set_new(requests, "client_roots", input_roots());
	if (json_object_size(requests)) {
		input_ask(c, requests, NULL);
	} else {
		json_decref(requests);
		tool_answer_text(c, "This client can be asked for nothing", false);
	}
}

#define INPUT_TOOL(id, function, about) \
	const struct tool tool_test_input_required_result_##id = { .name = "test_input_required_result_" #id, .description = about, \
		.input_schema = NO_ARGUMENTS, .read_only = true, .call = function }

INPUT_TOOL(elicitation, name_wanted, "Needs the user's name.");
INPUT_TOOL(sampling, capital_wanted, "Needs the client's model.");
INPUT_TOOL(list_roots, roots_wanted, "Needs the client's roots.");
INPUT_TOOL(request_state, state_wanted, "Needs a confirmation, and the state that belongs to it.");
INPUT_TOOL(multiple_inputs, three_wanted, "Needs three things at once.");
INPUT_TOOL(multi_round, rounds_wanted, "Needs two things, one after the other.");
INPUT_TOOL(tampered_state, state_wanted, "Needs a confirmation, and a state that nobody has changed.");
INPUT_TOOL(capabilities, allowed_wanted, "Needs whatever the client can give.");
