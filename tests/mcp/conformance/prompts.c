/* prompts.c - prompts, what completes their arguments, and a log level that nobody keeps */
#include "fixture.h"

#include <string.h>

static json_t *user_says(json_t *content)
{
	return json_pack("{s:s,s:o}", "role", "user", "content", content);
}

static json_t *text_block(const char *text)
{
	return json_pack("{s:s,s:s}", "type", "text", "text", text);
}

static void simple(struct call *c, const json_t *arguments)
{
	(void)arguments;
	call_answer_result(c, json_pack("{s:[o]}", "messages", user_says(text_block("This is a simple prompt for testing."))));
}

static void with_arguments(struct call *c, const json_t *arguments)
{
	json_t *text = json_sprintf("Prompt with arguments: arg1='%s', arg2='%s'", fixture_text(arguments, "arg1", ""), fixture_text(arguments, "arg2", ""));

	call_answer_result(c, json_pack("{s:[o]}", "messages", user_says(text_block(text ? json_string_value(text) : ""))));
	json_decref(text);
}

static void with_resource(struct call *c, const json_t *arguments)
{
	json_t *resource = json_pack("{s:s,s:{s:s,s:s,s:s}}", "type", "resource", "resource", "uri", fixture_text(arguments, "resourceUri", "test://static-text"),
				     "mimeType", "text/plain", "text", "Embedded resource content for testing.");

	call_answer_result(c, json_pack("{s:[o,o]}", "messages", user_says(resource), user_says(text_block("Please process the embedded resource above."))));
}

static void with_image(struct call *c, const json_t *arguments)
{
	(void)arguments;
	call_answer_result(c, json_pack("{s:[o,o]}", "messages", user_says(json_pack("{s:s,s:s,s:s}", "type", "image", "data", PNG_PIXEL, "mimeType", "image/png")),
				 user_says(text_block("Please analyze the image above."))));
}

static void with_input(struct call *c, const json_t *arguments)
{
	const char *context = input_elicited_text(c, "user_context", "context");

	(void)arguments;
	if (context)
		call_answer_result(c, json_pack("{s:[o]}", "messages", user_says(text_block(context))));
	else if (fixture_can(c, "elicitation"))
		input_ask(c, json_pack("{s:o}", "user_context", input_elicitation("What context should the prompt use?", "context", "string")), NULL);
	else
		fixture_incapable(c, "elicitation", json_pack("{s:{}}", "elicitation"));
}

static const struct prompt {
	const char *name, *description, *argument[2];
	bool        modern;
	void      (*get)(struct call *c, const json_t *arguments);
} rows[] = {
	{ "test_simple_prompt",                 "Says one sentence",           { NULL },             false, simple         },
	{ "test_prompt_with_arguments",         "Says its arguments",          { "arg1", "arg2" },   false, with_arguments },
	{ "test_prompt_with_embedded_resource", "Says a resource",             { "resourceUri" },    false, with_resource  },
	{ "test_prompt_with_image",             "Says an image",               { NULL },             false, with_image     },
	{ "test_input_required_result_prompt",  "Says what it is told in time", { NULL },            true,  with_input     },
};

static json_t *prompt_json(const struct prompt *p)
{
	json_t *prompt = json_pack("{s:s,s:s}", "name", p->name, "description", p->description), *arguments = json_array();

	for (size_t i = 0; i < ARRAY_LEN(p->argument) && p->argument[i]; i++)
		json_array_append_new(arguments, json_pack("{s:s,s:s,s:b}", "name", p->argument[i], "description", "Any text", "required", 1));
	json_object_set_new(prompt, "arguments", arguments);
	return prompt;
}

static bool is_served(const struct call *c, const struct prompt *p)
{
	return !p->modern || revision_is_modern(c->revision);
}

void prompts_list(struct call *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (is_served(c, &rows[i]))
			json_array_append_new(list, prompt_json(&rows[i]));
	fixture_cacheable(c, json_pack("{s:o}", "prompts", list));
}

static const char *missing_argument(const struct prompt *p, const json_t *arguments)
{
	for (size_t i = 0; i < ARRAY_LEN(p->argument) && p->argument[i]; i++)
		if (!json_is_string(json_object_get(arguments, p->argument[i])))
			return p->argument[i];
	return NULL;
}

void prompts_get(struct call *c)
{
	const json_t *arguments = json_object_get(c->params, "arguments");
	const char   *name      = fixture_text(c->params, "name", "");
	size_t        i;

	for (i = 0; i < ARRAY_LEN(rows) && (strcmp(rows[i].name, name) != 0 || !is_served(c, &rows[i])); i++)
		;
	if (i == ARRAY_LEN(rows))
		fixture_invalid(c, "Unknown prompt");
	else if (missing_argument(&rows[i], arguments))
		fixture_invalid(c, "An argument of this prompt is missing; prompts/list names them");
	else
		rows[i].get(c, arguments);
}

void completion_complete(struct call *c)
{
	call_answer_result(c, json_pack("{s:{s:[],s:i,s:b}}", "completion", "values", "total", 0, "hasMore", 0));
}

void logging_set_level(struct call *c)
{
	call_answer_result(c, json_object());
}
