#include "tool.h"

#include <string.h>

const struct tool *tool_find(const char *name)
{
	for (size_t i = 0; tools[i]; i++)
		if (strcmp(tools[i]->name, name) == 0)
			return tools[i];
	return NULL;
}

/* --- tools/list --- */

static json_t *schema_of(const char *text)
{
	return json_loads(text, JSON_REJECT_DUPLICATES, NULL);
}

/* All four are said: what is left out counts as destructive and as reaching into the world. */
static json_t *annotations_of(const struct tool *t, const struct mcp *m, enum revision revision)
{
	bool    read_only = t->read_only || (t->leaves_nothing && m->settings->read_only_hint);
	json_t *hints     = json_pack("{sb sb sb sb}", "readOnlyHint", read_only, "destructiveHint", t->destructive, "idempotentHint", t->idempotent,
				  "openWorldHint", t->open_world);

	if (t->title && revision < REVISION_2025_06_18) /* it had no other place then */
		json_object_set_new(hints, "title", json_string(t->title));
	return hints;
}

json_t *tool_json(const struct tool *t, const struct mcp *m, enum revision revision)
{
	json_t *tool = json_pack("{ss ss}", "name", t->name, "description", t->description);

	json_object_set_new(tool, "inputSchema", t->input_schema ? schema_of(t->input_schema) : arguments_schema(t->arguments));
	if (revision >= REVISION_2025_03_26)
		json_object_set_new(tool, "annotations", annotations_of(t, m, revision));
	if (revision >= REVISION_2025_06_18 && t->title)
		json_object_set_new(tool, "title", json_string(t->title));
	if (revision >= REVISION_2025_06_18 && t->output_schema && !(t->in_words && m->settings->reply == REPLY_TEXT))
		json_object_set_new(tool, "outputSchema", schema_of(t->output_schema));
	return tool;
}

json_t *tools_list(struct mcp *m, enum revision revision)
{
	json_t *list = m->tool_list[revision];

	if (list)
		return list;
	m->tool_list[revision] = list = json_array();
	for (size_t i = 0; tools[i]; i++)
		if (!tools[i]->unlisted || m->settings->list_all_tools)
			json_array_append_new(list, tool_json(tools[i], m, revision));
	return list;
}

void tools_done(struct mcp *m)
{
	for (size_t i = 0; i < ARRAY_LEN(m->tool_list); i++) {
		json_decref(m->tool_list[i]);
		m->tool_list[i] = NULL;
	}
}
