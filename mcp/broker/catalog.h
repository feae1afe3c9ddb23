/*
 * catalog.h - the tools of one server, as programs know them. Pure.
 *
 * All of it comes from the server and is hostile: names are made Python identifiers, terminal escapes are removed from texts,
 * and a tool that is too large or has no usable name is left out. Tools that get the same name are numbered.
 */
#pragma once
#include "server_entry.h"

enum { CATALOG_MAX = 10000, TOOL_NAME_MAX = 128, TOOL_LINE_MAX = 200, TOOL_ABOUT_MAX = 4096 };
#define TOOL_DEFINITION_MAX (64 * KIB)

struct catalog_tool {
	const char *name;       /* as the server calls it */
	char       *full;       /* "github.search_issues": server and tool as a program calls them */
	char       *own;        /* "github.search-issues": the server as in the file, the tool as the server calls it */
	json_t     *definition; /* as the server sent it */
	char       *line, *about, *signature; /* clean; the first of them is one line */
	bool        read_only, destructive;   /* readOnlyHint, destructiveHint; if missing: false, true */
};

struct catalog {
	struct catalog_tool *tool; /* sorted by full */
	size_t               n;
	size_t               left_out;
};

/* definitions: an array; *ret has what could be taken of it. */
must_use int catalog_build(struct catalog *ret, const struct server_entry *server, const json_t *definitions, struct err *e);
void         catalog_done(struct catalog *c);

/* By either name. NULL: there is none. */
const struct catalog_tool *catalog_find_tool(const struct catalog *c, const char *name);
/* How well the words fit; 0: not at all. */
unsigned                   catalog_rank_tool(const struct catalog_tool *t, const char *words);

/* As the bridge and find_tools report a tool; new references. */
json_t *catalog_tool_summary_json(const struct catalog_tool *t); /* name, summary, signature */
json_t *catalog_tool_definition_json(const struct catalog_tool *t); /* name, description, inputSchema, outputSchema */
