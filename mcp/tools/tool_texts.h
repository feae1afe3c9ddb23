/*
 * tool_texts.h - what a model reads about this server, filled in from the settings and the default profile as files
 * say.
 *
 * Texts of tools and of their arguments may have places in braces: {network}, {timeout}, {most}, {profile},
 * {packages}, {shown}. brigd is not asked (instructions.h).
 */
#pragma once
#include "mcp.h"

struct words {
	json_t     *profile;   /* the default profile's file, or NULL */
	json_t     *hosts;     /* texts: what programs can reach; owned; may be empty */
	const json_t *shown;   /* names of --ro; borrowed */
	bool        has_roots; /* the client may show folders, too */
	char        timeout[32], most[32]; /* seconds */
	const char *name;      /* of the default profile; borrowed */
};

void words_of(const struct mcp *m, struct words *ret);
void words_done(struct words *w);
#define scoped_words scoped(words_done) struct words

bool words_have_network(const struct words *w);
/* The text with its places filled in; malloc'ed. NULL: memory is short. */
char *words_fill(const struct words *w, const char *text);
