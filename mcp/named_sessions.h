/*
 * named_sessions.h - the sessions of all clients, and which one a name means.
 *
 * A name belongs to an owner: to another one there is no such session. An owner is the client on stdio; over HTTP a token, and
 * within it the MCP session of those revisions that have one.
 */
#pragma once
#include "call.h"
#include "named_session.h"

struct named_sessions *named_sessions_create(struct mcp *m);
void             named_sessions_destroy(struct named_sessions *all); /* nothing may want something of one any more */

/* Are there any here? A run can be held to a list of modules, a session cannot. */
bool named_sessions_are_offered(const struct settings *s);

/* One that is open, that opens, or whose end its owner has not been told; NULL: there is none. */
struct named_session *named_sessions_find(struct mcp *m, const char *owner, const char *name);
/* The same, made if need be. NULL with *e: there are too many. */
struct named_session *named_sessions_make(struct mcp *m, const char *owner, const char *name, struct err *e);

/* Names of the open ones of an owner, "a, b", at most so many bytes; returns buf. */
char *named_sessions_names(struct mcp *m, const char *owner, char *buf, size_t len);
