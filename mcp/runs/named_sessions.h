/*
 * named_sessions.h - the sessions of all clients, found by owner and name.
 *
 * A name belongs to an owner; for other owners there is no such session. On stdio the client is the owner. Over HTTP it is a
 * token, together with the MCP session in those revisions that have one.
 */
#pragma once
#include "call.h"
#include "named_session.h"

struct named_sessions *named_sessions_create(struct mcp *m);
void             named_sessions_destroy(struct named_sessions *all); /* no session may be in use any more */

/* Are there sessions with these settings? Not if imports are restricted: that can be enforced for a run, not for a session. */
bool named_sessions_are_offered(const struct settings *s);

/* A session that is open, that is being opened, or that is lost and its owner was not told yet; NULL: there is none. */
struct named_session *named_sessions_find(struct mcp *m, const char *owner, const char *name);
/* The same, but made if there is none. NULL with *e: too many are open. */
struct named_session *named_sessions_make(struct mcp *m, const char *owner, const char *name, struct err *e);

/* Ends all sessions of this owner. */
void named_sessions_end_all(struct mcp *m, const char *owner);

/* The names of an owner's open sessions, "a, b", cut to fit into len bytes. Returns buf. */
char *named_sessions_names(struct mcp *m, const char *owner, char *buf, size_t len);
