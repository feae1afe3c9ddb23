/* tools_ask.c - tools that ask the client for something, as the legacy revisions do it */
#include "fixture.h"

#include <stdlib.h>

static void answer_with(struct call *c, const char *what, const json_t *result)
{
	size_t      len;
	char       *text = rpc_dump(result, &len);
	json_t     *said = json_sprintf("%s%s", what, text ? text : "");

	tool_answer_text(c, json_string_value(said) ? json_string_value(said) : what, false);
	json_decref(said);
	free(text);
}

static bool failed(struct call *c, const json_t *error)
{
	if (error)
		tool_answer_text(c, fixture_text(error, "message", "The client answered with an error"), true);
	return error != NULL;
}

static void sampled(struct call *c, const json_t *result, const json_t *error)
{
	if (!failed(c, error))
		tool_answer_text(c, fixture_text(json_object_get(result, "content"), "text", "LLM response: not a text"), false);
}

static void elicited(struct call *c, const json_t *result, const json_t *error)
{
	if (!failed(c, error))
		answer_with(c, "User response: ", result);
}

static void completed(struct call *c, const json_t *result, const json_t *error)
{
	if (!failed(c, error))
		answer_with(c, "Elicitation completed: ", result);
}

static void ask_client(struct call *c, const char *method, json_t *params, ask_answered *answered)
{
	if (!ask(c, method, params, answered))
		tool_answer_text(c, "This client cannot be asked", true);
}

static void elicit(struct call *c, const char *message, const char *schema, ask_answered *answered)
{
	ask_client(c, "elicitation/create", json_pack("{s:s,s:o}", "message", message, "requestedSchema", json_loads(schema, 0, NULL)), answered);
}

static void sampling(struct call *c, const json_t *arguments)
{
	ask_client(c, "sampling/createMessage",
		   json_pack("{s:[{s:s,s:{s:s,s:s}}],s:i}", "messages", "role", "user", "content", "type", "text", "text", fixture_text(arguments, "prompt", ""), "maxTokens", 100),
		   sampled);
}

static void elicitation(struct call *c, const json_t *arguments)
{
	elicit(c, fixture_text(arguments, "message", ""),
	       "{\"type\":\"object\",\"properties\":{\"username\":{\"type\":\"string\",\"description\":\"User's response\"},"
	       "\"email\":{\"type\":\"string\",\"description\":\"User's email address\"}},\"required\":[\"username\",\"email\"]}",
	       elicited);
}

static void defaults(struct call *c, const json_t *arguments)
{
	(void)arguments;
	elicit(c, "Please review what is filled in",
	       "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"default\":\"John Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},"
	       "\"score\":{\"type\":\"number\",\"default\":95.5},\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\",\"pending\"],\"default\":\"active\"},"
	       "\"verified\":{\"type\":\"boolean\",\"default\":true}},\"required\":[]}",
	       completed);
}

static void enums(struct call *c, const json_t *arguments)
{
	(void)arguments;
	elicit(c, "Please choose",
	       "{\"type\":\"object\",\"properties\":{"
	       "\"untitledSingle\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]},"
	       "\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":\"Second Option\"},"
	       "{\"const\":\"value3\",\"title\":\"Third Option\"}]},"
	       "\"legacyEnum\":{\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],\"enumNames\":[\"Option One\",\"Option Two\",\"Option Three\"]},"
	       "\"untitledMulti\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}},"
	       "\"titledMulti\":{\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\"},{\"const\":\"value2\",\"title\":\"Second Choice\"},"
	       "{\"const\":\"value3\",\"title\":\"Third Choice\"}]}}},\"required\":[]}",
	       completed);
}

static void missing_capability(struct call *c, const json_t *arguments)
{
	(void)arguments;
	if (revision_is_modern(c->revision) && !fixture_can(c, "sampling"))
		fixture_incapable(c, "sampling", json_pack("{s:{}}", "sampling"));
	else
		tool_answer_text(c, "The client declares sampling", false);
}

static void streaming_elicitation(struct call *c, const json_t *arguments)
{
	const char *name = input_elicited_text(c, "user_name", "name");

	(void)arguments;
	if (!fixture_can(c, "elicitation"))
		fixture_incapable(c, "elicitation", json_pack("{s:{}}", "elicitation"));
	else if (!name)
		input_ask(c, json_pack("{s:o}", "user_name", input_elicitation("What is your name?", "name", "string")), NULL);
	else
		tool_answer_text(c, name, false);
}

const struct tool tool_test_sampling = {
	.name = "test_sampling", .description = "Asks the client's model.", .read_only = true, .call = sampling,
	.input_schema = "{\"type\":\"object\",\"properties\":{\"prompt\":{\"type\":\"string\"}},\"required\":[\"prompt\"]}",
};
const struct tool tool_test_elicitation = {
	.name = "test_elicitation", .description = "Asks the user.", .read_only = true, .call = elicitation,
	.input_schema = "{\"type\":\"object\",\"properties\":{\"message\":{\"type\":\"string\"}},\"required\":[\"message\"]}",
};
const struct tool tool_test_elicitation_sep1034_defaults = {
	.name = "test_elicitation_sep1034_defaults", .description = "Asks the user, with presets.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = defaults,
};
const struct tool tool_test_elicitation_sep1330_enums = {
	.name = "test_elicitation_sep1330_enums", .description = "Asks the user to choose.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = enums,
};
const struct tool tool_test_missing_capability = {
	.name = "test_missing_capability", .description = "Needs a client with sampling.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = missing_capability,
};
const struct tool tool_test_streaming_elicitation = {
	.name = "test_streaming_elicitation", .description = "Needs to know a name.", .input_schema = NO_ARGUMENTS, .read_only = true, .call = streaming_elicitation,
};
