/*
 * session_argument.h - the argument session, for all tools that take it: whose session it is, which one, and how one is made.
 */
#pragma once
#include "call.h"
#include "session_files.h"

/* Its name. It is listed only if there are sessions, and is repeated in a header (2026-07-28 over HTTP). */
#define SESSION_ARGUMENT "session"
#define SESSION_HEADER   "Session"

/* The same for what continues or ends a run. */
#define EXECUTION_ARGUMENT "execution_id"
#define EXECUTION_HEADER   "Execution"

/* The row for a tool that requires it. */
#define SESSION_ARGUMENT_ROW { { SESSION_ARGUMENT, FIELD_STR, 0, 0, PROTOCOL_NAME_MAX, 0, "", NULL, NULL }, true, "Its name" }

const char *session_argument_owner(const struct call *c);

/* The name of the session, checked. "": none was given. NULL with *e. Borrowed from the arguments. */
must_use const char *session_argument_name(const json_t *arguments, struct err *e);

/* The open session of that name. NULL with *e: there is none, or why it is gone. */
must_use struct named_session *session_argument_find(struct call *c, const char *name, struct err *e);

/*
 * The profile, memory_limit and env of the session of this name; a new reference. If it is open: its own; a call that asks for
 * another profile gets NULL with *e, and a warning for anything else that it cannot change. Otherwise those of the call; what
 * the call does not give is taken from an earlier session of this name that was lost.
 */
must_use json_t *session_argument_asked(struct call *c, const char *name, const json_t *arguments, json_t *warnings, struct err *e);

/* The session of this name, made if necessary. It must be entered before the loop turns again. NULL with *e. */
must_use struct named_session *session_argument_make(struct call *c, const char *name, const json_t *asked, const json_t *explained, json_t *warnings, struct err *e);
