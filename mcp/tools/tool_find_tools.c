/* tool_find_tools.c - which tools of other servers a program can call; offered only with --servers */
#define _GNU_SOURCE
#include "broker.h"
#include "member.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

enum { FOUND = 10, FOUND_MAX = 50 };

/* clang-format off */
static const struct argument rows[] = {
	{ { "query", FIELD_STR,   0, 0, 200,       0,     "Words; \"\": all", NULL, NULL }, true,
	  "Words that its name or description has, as \"search issues\"; all tools when empty" },
	{ { "limit", FIELD_COUNT, 0, 1, FOUND_MAX, FIELD_UNSET, "Default 10", NULL, NULL }, false,
	  "How many at most; default 10" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

struct work {
	struct call     *call;
	json_t          *arguments;
	struct gathering gathering;
};

static void find_tools_work_free(struct call *c)
{
	struct work *w = c->work;

	gathering_leave(&w->gathering);
	c->cancel = NULL;
	json_decref(w->arguments);
	free(w);
}

static char *found_tools_to_text(struct broker *b, const char *query, size_t max)
{
	json_t *found = broker_search_tools(b, query, max), *troubles = broker_failed_servers(b), *one;
	char   *text  = NULL;
	size_t  len, i;
	FILE   *out = open_memstream(&text, &len);

	if (out) {
		json_array_foreach(found, i, one)
			fprintf(out, "tools.%s\n    %s\n", member_text(one, "signature"), member_text(one, "summary"));
		if (!i)
			fputs("No tool has these words; an empty query lists all.\n", out);
		json_array_foreach(troubles, i, one)
			fprintf(out, "not there: %s\n", json_string_value(one));
		fclose(out);
	}
	json_decref(found);
	json_decref(troubles);
	return text;
}

static void on_tools_gathered(void *owner)
{
	struct work  *w     = owner;
	const json_t *limit = json_object_get(w->arguments, "limit");
	char         *text  = found_tools_to_text(w->call->mcp->broker, member_text(w->arguments, "query"),
				 json_is_integer(limit) ? (size_t)json_integer_value(limit) : FOUND);

	tool_end_work_with_text(w->call, text ? text : "out of memory", !text);
	free(text);
}

static void find_tools_call(struct call *c, const json_t *given)
{
	struct err   e;
	struct work *w = tool_work_create(c, sizeof *w, find_tools_work_free);

	if (!w)
		return;
	w->call      = c;
	w->gathering = (struct gathering){ .done = on_tools_gathered, .owner = w };
	w->arguments = arguments_parse(rows, given, NULL, &e);
	if (w->arguments)
		broker_gather_tools(c->mcp->broker, &w->gathering, "");
	else
		tool_end_work_with_text(c, e.text, true);
}

const struct tool tool_find_tools = {
	.name        = "find_tools",
	.description = "Find tools that programs can call: signature, and one line about each.",
	.manual    = "Find the tools that programs of execute_code can call: the name, the signature in Python and one "
		     "line about each.",
	.arguments = rows,
	.read_only = true,
	.idempotent = true,
	.open_world = true,
	.brokered   = true,
	.call       = find_tools_call,
};
