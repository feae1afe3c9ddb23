/*
 * named_session.h - the sessions of clients: jails that stay, and the uses of them.
 *
 * The client knows a session by a name; brigd's id of it is secret. A name belongs to an owner; other owners cannot
 * find it. On stdio the client is the owner. Over HTTP it is a token, together with the MCP session in those
 * revisions that have one.
 *
 * A session is opened for its first use, over the connection of brigd_link.h and without `stays`, so it ends with the
 * connection. When brigd has ended it (idle, too old, short of memory, itself restarted), the next call opens a new
 * one, and its reply has the reason why the earlier one is lost.
 *
 * Calls run one after the other, for they share an interpreter; files can be moved at the same time.
 */
#pragma once
#include "call.h"
#include "run_client.h"
#include "run_failure.h"

/* The argument session. It is listed only if there are sessions, and is repeated in a header (2026-07-28 over HTTP). */
#define SESSION_ARGUMENT "session"
#define SESSION_HEADER   "Session"

/* The same for what continues or ends a run. */
#define EXECUTION_ARGUMENT "execution_id"
#define EXECUTION_HEADER   "Execution"

/* The row for a tool that requires it. */
#define SESSION_ARGUMENT_ROW \
	{ { SESSION_ARGUMENT, FIELD_STR, 0, 0, PROTOCOL_NAME_MAX, 0, "", NULL, NULL }, true, "Its name" }

enum { SESSION_OWNER_MAX = 128 };

struct session_events {
	void (*ready)(void *owner); /* the session is open; a call may run until it leaves */
	void (*refused)(void *owner, const struct failure *f); /* it will not be ready; it has left already */
};

/* One use of a session: a call, or a transfer of files. */
struct session_use {
	const struct session_events *events;
	void                        *owner;
	bool                         is_call;
	struct named_session        *session; /* NULL: it uses none */
	bool                         is_ready;
	TAILQ_ENTRY(session_use)     link;
};

enum session_state {
	SESSION_CLOSED,    /* never opened, could not be opened, or lost */
	SESSION_OPENS,
	SESSION_OPEN,
	SESSION_VANISHES,  /* brigd does not know it any more, and the event of its end has not come yet */
	SESSION_ABANDONED, /* its client has ended it while it opened: it is closed as soon as it is open */
	SESSION_OVER,      /* its client has ended it: its name is free, and it cannot be found any more */
};

struct named_session {
	TAILQ_ENTRY(named_session) link;
	struct mcp         *mcp;
	char                owner[SESSION_OWNER_MAX], name[PROTOCOL_NAME_MAX + 1];
	enum session_state  state;
	char                id[RUN_ID_LEN + 1];
	/* arguments of the call that made it, for its next jail: profile, memory_limit, env */
	json_t             *asked;
	json_t             *message; /* the request that opens it; NULL: it was never opened */
	/* its own copies of read-only binds: roots of the client may change; the rest is -1 */
	int                 ro_fd[PROTOCOL_RO_MAX];
	size_t              ro_fds;
	struct run_client   run;
	struct loop_timer   late_end; /* limits VANISHES */
	TAILQ_HEAD(session_uses, session_use) uses; /* oldest first */
	struct session_use *running;  /* the call that has the interpreter, or NULL */
	struct loop_timer   pump;
	struct failure      failed;   /* why it could not be opened or was ended, for the uses that wait */
	/* why an earlier jail of this name is gone, until a reply had it; "": nothing to report */
	char                lost[300];
	int64_t             lost_ms;
	unsigned            outputs;  /* the number in the name of the last output_file.h */
};

/* All sessions of a brig-mcp. */
struct named_sessions {
	struct mcp                 *mcp;
	TAILQ_HEAD(, named_session) all;
};

struct named_sessions *named_sessions_create(struct mcp *m);
void                   named_sessions_destroy(struct named_sessions *all); /* no session may be in use any more */

/*
 * Are there sessions with these settings? Not if imports are restricted: that can be enforced for a run, not for a
 * session.
 */
bool named_sessions_are_offered(const struct settings *s);

/* Ends all sessions of this owner. */
void named_sessions_request_close_all(struct mcp *m, const char *owner);

/* --- the argument session of a call --- */

/* The name of the session, checked. "": none was given. NULL with *e. Borrowed from the arguments. */
must_use const char *named_session_parse_argument(const json_t *arguments, struct err *e);

/* The session that the call means if it is open, is being opened, or is lost and no reply had that yet; else NULL. */
struct named_session *named_session_find(const struct call *c, const char *name);
/* The open session of that name. NULL with *e: there is no such session, or why it is gone. */
must_use struct named_session *named_session_find_open(const struct call *c, const char *name, struct err *e);

/*
 * The profile, memory_limit and env of the session of this name; a new reference. If it is open: its own; a call that
 * asks for another profile gets NULL with *e, and a warning for anything else that it cannot change. Otherwise those
 * of the call; what the call does not give is taken from an earlier session of this name that was lost.
 */
must_use json_t *named_session_merge_asked(const struct call *c, const char *name, const json_t *arguments,
					   json_t *warnings, struct err *e);

/* The session of this name, made if necessary. It must be entered before the loop turns again. NULL with *e. */
must_use struct named_session *named_session_make(const struct call *c, const char *name, const json_t *asked,
						  const json_t *explained, json_t *warnings, struct err *e);

/* --- its uses --- */

/*
 * Begins to use the session, which is opened if necessary. The functions of u are called later, not within this call.
 */
void named_session_enter(struct named_session *s, struct session_use *u);
void named_session_leave(struct session_use *u); /* may be called if u uses none; may free the session */

/* brigd has answered that it knows no session of this id any more. */
void named_session_set_gone(struct named_session *s, const char *id);
/* The client ends it: brigd ends calls under way, uses that wait are refused. It is freed soon. */
void named_session_request_close(struct named_session *s);
bool named_session_is_over(const struct named_session *s);
