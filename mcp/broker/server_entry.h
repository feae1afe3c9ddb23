/*
 * server_entry.h - the entries of the file of --servers, an object mcpServers as in the files of clients.
 *
 *     {"mcpServers": {"github": {"command": "npx", "args": ["-y", "..."], "env": {"TOKEN": "${GITHUB_TOKEN}"}, "cwd": "/srv"},
 *                     "search": {"type": "http", "url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}}}
 *
 * Pure, except that ${NAME} and ${NAME:-preset} are taken from the environment. An invalid entry is an error. An unknown key,
 * an entry that is switched off and a variable that is not set are only notes: other clients read the file as well, and what
 * only they understand must not keep its other servers from being used.
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
	char             identifier[SERVER_NAME_MAX + 8]; /* its name in programs: a Python identifier */
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

/* Makes a Python identifier of a name: letters, digits and '_', at most max bytes, never a keyword. ret has max + 1 bytes. */
void make_python_identifier(const char *name, char *ret, size_t max);
