/*
 * tool_texts.h - what a model reads about this server, filled in from the settings and the default profile by files.
 *
 * Texts of tools and of their arguments may have places in braces: {network}, {timeout}, {most}, {profile},
 * {packages}, {shown}. brigd is not asked (instructions.h).
 */
#pragma once
#include "mcp.h"

struct tool_texts {
	json_t     *profile;   /* the default profile's file, or NULL */
	json_t     *hosts;     /* texts: what programs can reach; owned; may be empty */
	const json_t *shown;   /* names of --ro; borrowed */
	bool        has_roots; /* the client may show folders, too */
	char        timeout[32], most[32]; /* seconds */
	const char *name;      /* of the default profile; borrowed */
};

void tool_texts_init(const struct mcp *m, struct tool_texts *ret);
void tool_texts_done(struct tool_texts *w);
#define scoped_tool_texts scoped(tool_texts_done) struct tool_texts

bool tool_texts_have_network(const struct tool_texts *w);
/* The text with its places filled in; malloc'ed. NULL: memory is short. */
char *tool_texts_expand(const struct tool_texts *w, const char *text);
