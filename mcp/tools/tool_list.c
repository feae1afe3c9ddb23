#include "broker.h"
#include "named_session.h"
#include "tool.h"
#include "tool_texts.h"

#include <stdlib.h>
#include <string.h>

const struct tool *tool_find(const char *name)
{
	for (size_t i = 0; tools[i]; i++)
		if (strcmp(tools[i]->name, name) == 0)
			return tools[i];
	return NULL;
}

bool tool_is_offered(const struct tool *t, const struct mcp *m)
{
	return (!t->brokered || m->broker) && (!t->in_session || named_sessions_are_offered(m->settings));
}

bool tool_has_argument(const struct tool *t, const char *argument)
{
	for (const struct argument *row = t->arguments; row && row->field.name; row++)
		if (strcmp(row->field.name, argument) == 0)
			return true;
	return false;
}

bool tool_takes_session(const struct tool *t, const struct mcp *m)
{
	return tool_has_argument(t, SESSION_ARGUMENT) && named_sessions_are_offered(m->settings);
}

/* --- tools/list --- */

static json_t *parse_schema_text(const char *text)
{
	return json_loads(text, JSON_REJECT_DUPLICATES, NULL);
}

/* All four hints are given: a missing one counts as destructive, or as open world. */
static json_t *tool_annotations(const struct tool *t, const struct mcp *m, const struct tool_texts *w,
				enum revision revision)
{
	/* its programs can do what the tools and hosts can */
	bool    reaches   = t->leaves_nothing && (m->broker || tool_texts_have_network(w));
	bool    hint      = m->settings->read_only_hint &&
		    (!reaches || m->settings->origin[SETTING_read_only_hint] != ORIGIN_PRESET);
	bool    read_only = t->read_only || (t->leaves_nothing && hint);
	json_t *hints     = json_pack("{sb sb sb sb}", "readOnlyHint", read_only, "destructiveHint",
				      t->destructive || (reaches && !read_only), "idempotentHint", t->idempotent,
				      "openWorldHint", t->open_world || reaches);

	if (t->title && revision < REVISION_2025_06_18) /* it had no other place then */
		json_object_set_new(hints, "title", json_string(t->title));
	return hints;
}

static json_t *tool_description(const struct tool *t, const struct mcp *m, const struct tool_texts *w)
{
	char       *own      = tool_texts_expand(w, t->description);
	char       *names    = t->with_servers && m->broker ? broker_servers_text(m->broker, 400) : NULL;
	const char *sessions = t->with_sessions && named_sessions_are_offered(m->settings) ? t->with_sessions : "";
	json_t     *made;

	if (names)
		made = json_sprintf("%s%s Programs can call tools of these servers: %s. %s", own ? own : "", sessions,
				    names, t->with_servers);
	else
		made = json_sprintf("%s%s", own ? own : "", sessions);
	free(names);
	free(own);
	return made;
}

/*
 * Load balancers send the calls of a session to one server by this header, over HTTP. Without sessions the argument
 * is removed.
 */
static void adapt_session_arguments(json_t *schema, const struct mcp *m, enum revision revision)
{
	json_t *properties = json_object_get(schema, "properties"),
	       *session    = json_object_get(properties, SESSION_ARGUMENT),
	       *execution  = json_object_get(properties, EXECUTION_ARGUMENT);

	if (!named_sessions_are_offered(m->settings))
		json_object_del(properties, SESSION_ARGUMENT);
	else if (session && revision_is_modern(revision) && m->settings->http)
		json_object_set_new(session, "x-mcp-header", json_string(SESSION_HEADER));
	if (execution && revision_is_modern(revision) && m->settings->http)
		json_object_set_new(execution, "x-mcp-header", json_string(EXECUTION_HEADER));
}

static void expand_argument_descriptions(json_t *schema, const struct tool_texts *w)
{
	const char *name;
	json_t     *property;

	json_object_foreach(json_object_get(schema, "properties"), name, property) {
		const char *text = json_string_value(json_object_get(property, "description"));
		char       *made = text && strchr(text, '{') ? tool_texts_expand(w, text) : NULL;

		if (made)
			json_object_set_new(property, "description", json_string(made));
		free(made);
	}
}

json_t *tool_json(const struct tool *t, const struct mcp *m, const struct tool_texts *w, enum revision revision)
{
	json_t *tool   = json_pack("{ss so}", "name", t->name, "description", tool_description(t, m, w));
	json_t *schema = t->input_schema ? parse_schema_text(t->input_schema) : arguments_schema(t->arguments);

	if (t->arguments)
		adapt_session_arguments(schema, m, revision);
	expand_argument_descriptions(schema, w);
	json_object_set_new(tool, "inputSchema", schema);
	if (revision >= REVISION_2025_03_26)
		json_object_set_new(tool, "annotations", tool_annotations(t, m, w, revision));
	if (revision >= REVISION_2025_06_18 && t->title)
		json_object_set_new(tool, "title", json_string(t->title));
	if (revision >= REVISION_2025_06_18 && t->output_schema && !(t->text_only && m->settings->reply == REPLY_TEXT))
		json_object_set_new(tool, "outputSchema", parse_schema_text(t->output_schema));
	return tool;
}

json_t *tools_list(struct mcp *m, enum revision revision)
{
	json_t      *list = m->tool_list[revision];
	scoped_tool_texts w    = { 0 };

	if (list)
		return list;
	tool_texts_init(m, &w);
	m->tool_list[revision] = list = json_array();
	for (size_t i = 0; tools[i]; i++)
		if ((!tools[i]->unlisted || m->settings->list_all_tools) && tool_is_offered(tools[i], m))
			json_array_append_new(list, tool_json(tools[i], m, &w, revision));
	return list;
}

void tools_done(struct mcp *m)
{
	for (size_t i = 0; i < ARRAY_LEN(m->tool_list); i++) {
		json_decref(m->tool_list[i]);
		m->tool_list[i] = NULL;
	}
}
