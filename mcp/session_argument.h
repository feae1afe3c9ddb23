/*
 * session_argument.h - what tools that take a session have in common: whose it is, which one is meant, and how one is made.
 */
#pragma once
#include "call.h"
#include "session_files.h"

/* The row of the argument; it is in the list with sessions alone, and is repeated in a header (2026-07-28, over HTTP). */
#define SESSION_ARGUMENT "session"
#define SESSION_HEADER   "Session"

/* The row, of a tool that cannot do without. */
#define SESSION_ARGUMENT_ROW { { SESSION_ARGUMENT, FIELD_STR, 0, 0, PROTOCOL_NAME_MAX, 0, "", NULL, NULL }, true, "Its name" }

const char *session_argument_owner(const struct call *c);

/* Its name, checked. "": none is meant. NULL with *e. Borrowed from the arguments. */
must_use const char *session_argument_name(const json_t *arguments, struct err *e);

/* One that is open. NULL with *e: there is none, and why it is gone. */
must_use struct named_session *session_argument_find(struct call *c, const char *name, struct err *e);

/*
 * What a new one of this name is to have: profile, memory_limit and env of the call; what it does not say is as of the earlier one
 * of this name, if that was lost. Of one that is open its own; with *e NULL if the call asks for another profile, and a warning
 * for what the call cannot change. A new reference.
 */
must_use json_t *session_argument_asked(struct call *c, const char *name, const json_t *arguments, json_t *warnings, struct err *e);

/* The session, prepared to be entered at once. NULL with *e. */
must_use struct named_session *session_argument_make(struct call *c, const char *name, const json_t *asked, const json_t *explained, struct err *e);
