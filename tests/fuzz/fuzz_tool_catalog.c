/* fuzz_tool_catalog.c - what a server says about its tools, and arguments for them: {"tools": [...], "args": {...}} */
#include "tool_schema.h"
#include "catalog.h"
#include "fuzz.h"
#include "text.h"
#include "tool_value.h"

static void look_at(const struct catalog_tool *t, const json_t *args)
{
	struct err e     = { 0 };
	json_t    *brief = catalog_tool_summary_json(t), *whole = catalog_tool_definition_json(t);

	must(brief && whole && strncmp(t->full, "s.", 2) == 0 && strlen(t->line) <= TOOL_LINE_MAX && strlen(t->about) <= TOOL_ABOUT_MAX);
	must(!text_has_control(t->line) && text_is_utf8(t->about, strlen(t->about)) && strlen(t->signature) <= 700);
	if (args && argument_check(args, json_object_get(t->definition, "inputSchema"), &e) < 0)
		must(*e.text && text_is_plain(e.text));
	json_decref(brief);
	json_decref(whole);
}

static void look_at_value(const json_t *result)
{
	char   *error = NULL;
	json_t *value = tool_result_to_value(result, &error);

	must(!value == (error != NULL));
	json_decref(value);
	free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct server_entry server = { .name = "s", .identifier = "s" };
	json_t                   *said   = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	struct catalog            c;
	struct err                e;

	if (!said || catalog_build(&c, &server, json_object_get(said, "tools"), &e) < 0) {
		json_decref(said);
		return 0;
	}
	for (size_t i = 0; i < c.n; i++) {
		look_at(&c.tool[i], json_object_get(said, "args"));
		must(catalog_find_tool(&c, c.tool[i].full) == &c.tool[i]);
		must(!i || strcmp(c.tool[i - 1].full, c.tool[i].full) < 0);
	}
	look_at_value(said);
	catalog_done(&c);
	json_decref(said);
	return 0;
}
