/*
 * named_session.h - one session of a client: a jail that stays, and the uses of it.
 *
 * The client knows it by a name; brigd's id of it is secret. It is opened for its first use, over the connection of brigd_link.h
 * and without `stays`, so it ends with the connection. When brigd has ended it (idle, too old, short of memory, itself
 * restarted), the next call opens a new one, and is told that the earlier one is lost and why.
 *
 * Calls have their turn one after the other, for they share an interpreter; files can be moved at the same time.
 */
#pragma once
#include "brigd_link.h"
#include "run_failure.h"

enum { SESSION_OWNER_MAX = 128 };

/* One use of a session: a call, or a transfer of files. */
struct session_use {
	void                   (*ready)(void *owner); /* the session is open; for a call: it is its turn, until it leaves */
	void                   (*refused)(void *owner, const struct failure *f); /* it will not be ready; it has left already */
	void                    *owner;
	bool                     is_call;
	struct named_session    *session; /* NULL: it uses none */
	bool                     is_ready;
	TAILQ_ENTRY(session_use) link;
};

/* ENDS: brigd does not know it any more, and the event of its end has not come yet. */
enum session_state { SESSION_CLOSED, SESSION_OPENS, SESSION_OPEN, SESSION_ENDS };

struct named_session {
	TAILQ_ENTRY(named_session) link;
	struct mcp          *mcp;
	char                 owner[SESSION_OWNER_MAX], name[PROTOCOL_NAME_MAX + 1];
	enum session_state   state;
	bool                 is_over;  /* its client has ended it: its name is free, and it cannot be found any more */
	char                 id[RUN_ID_LEN + 1];
	json_t              *asked;    /* arguments of the call that made it, for its next jail: profile, memory_limit, env */
	json_t              *message;  /* the request that opens it; NULL: it was never opened */
	int                  shown[PROTOCOL_RO_MAX]; /* its own copies of what it shows: roots of the client may change; the rest is -1 */
	struct question      question;
	struct loop_timer    late_end; /* in ENDS */
	TAILQ_HEAD(session_uses, session_use) uses; /* oldest first */
	struct session_use  *turn;     /* the call whose turn it is; NULL: none */
	struct loop_timer    pump;
	struct failure       failed;   /* why it could not be opened, for the uses that wait */
	char                 lost[300]; /* why an earlier jail of this name is gone, until a call was told; "": nothing to tell */
	int64_t              lost_ms;
	unsigned             outputs;  /* the number in the name of the last output_file.h */
	uint64_t             idle_ms;  /* brigd ends it after so long without a call */
};

/* All sessions of a brig-mcp; owners and the most that may be open are in named_sessions.h. */
struct named_sessions {
	struct mcp                 *mcp;
	TAILQ_HEAD(, named_session) all;
};

/* Makes a closed session. It is freed in the next turn of the loop unless it is used by then. NULL: no memory. */
must_use struct named_session *named_session_create(struct mcp *m, const char *owner, const char *name);
void                           named_session_destroy(struct named_session *s);

/* Sets what a closed session is opened with. Takes both over. */
void named_session_prepare(struct named_session *s, json_t *asked, json_t *message);

/* Begins to use the session, which is opened if necessary. The functions of u are called later, not within this call. */
void named_session_enter(struct named_session *s, struct session_use *u);
void named_session_leave(struct session_use *u); /* may be called if u uses none; may free the session */

/* brigd has answered that it knows no session of this id any more. */
void named_session_gone(struct named_session *s, const char *id);
/* The client ends it: brigd ends calls under way, uses that wait are refused. It is freed soon. */
void named_session_end(struct named_session *s);
