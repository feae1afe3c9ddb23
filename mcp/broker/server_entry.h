/*
 * server_entry.h - the file of --servers: an object mcpServers, as clients have it, becomes entries.
 *
 *     {"mcpServers": {"github": {"command": "npx", "args": ["-y", "..."], "env": {"TOKEN": "${GITHUB_TOKEN}"}, "cwd": "/srv"},
 *                     "search": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}}}
 *
 * Pure but for the environment, from which ${NAME} and ${NAME:-preset} are
 * taken. What makes no sense is an error. Keys that are not known, entries that
 * are switched off, and variables that are not set are notes: a file that
 * others clients read as well must not be in the way of its other servers.
 */
#pragma once
#include "err.h"

#include <jansson.h>

#define SERVERS_FILE_MAX (256 * KIB)
enum { SERVERS_MAX = 64, SERVER_NAME_MAX = 48 };

enum server_kind {
#define KIND(id, name, key, doc) SERVER_##id,
#include "server_kind.def"
	SERVER_KINDS,
};

struct server_entry {
	const char      *name;                  /* as in the file */
	char             word[SERVER_NAME_MAX + 8]; /* what a program calls it: a name of Python */
	enum server_kind kind;
	const char      *cwd, *url;             /* NULL: none */
	const json_t    *argv;                  /* of stdio: command, then args */
	const json_t    *env, *headers;         /* objects of texts, or NULL */
	char             broken[200];           /* why it cannot be started; "": it can be */
};

struct server_entries {
	struct server_entry *entry;
	size_t               n;
	json_t              *kept;  /* what the texts are borrowed from */
	json_t              *notes; /* texts for people */
};

must_use int server_entries_parse(struct server_entries *ret, const char *bytes, size_t len, struct err *e);
void         server_entries_done(struct server_entries *s);

/* A name of Python made of a name: letters, digits and '_', at most max bytes of it; never a word of the language. */
void word_of(const char *name, char *ret, size_t max);
