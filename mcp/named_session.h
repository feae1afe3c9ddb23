/*
 * named_session.h - one session of a client: a jail that stays, and all that wants something of it.
 *
 * Its client knows it by a name; brigd by an id that is told to nobody. It is opened by what first wants something of it, over our
 * connection and without `stays`: it ends with that. When brigd has ended it (idle, too old, short of memory, itself restarted), the
 * next call opens it anew, and is told that the earlier one is lost and why.
 *
 * Calls have their turn one after the other, for they share an interpreter; files are moved beside them.
 */
#pragma once
#include "launcher.h"
#include "run_failure.h"

enum { SESSION_OWNER_MAX = 128 };

/* What wants something of a session. */
struct session_use {
	void                   (*ready)(void *owner); /* the session is open; of a call, it is its turn, until it leaves */
	void                   (*refused)(void *owner, const struct failure *f); /* that will not be; it has left already */
	void                    *owner;
	bool                     is_call;
	struct named_session    *session; /* NULL: of none */
	bool                     is_ready;
	TAILQ_ENTRY(session_use) link;
};

enum session_state { SESSION_CLOSED, SESSION_OPENS, SESSION_OPEN };

struct named_session {
	TAILQ_ENTRY(named_session) link;
	struct mcp          *mcp;
	char                 owner[SESSION_OWNER_MAX], name[PROTOCOL_NAME_MAX + 1];
	enum session_state   state;
	bool                 is_over;  /* its client has ended it: the name is free, and this one is nobody's */
	char                 id[RUN_ID_LEN + 1];
	json_t              *asked;    /* arguments of the call that made it: profile, memory_limit, env */
	json_t              *message;  /* open; NULL: it never was */
	struct question      question;
	struct question      ask_why;  /* an earlier jail of this name is gone */
	json_t              *ask_why_message;
	struct loop_timer    ask_why_again;
	int                  ask_why_left;
	TAILQ_HEAD(session_uses, session_use) uses; /* in the order in which they came */
	struct session_use  *turn;     /* the call that has it */
	struct loop_timer    pump;
	struct failure       failed;   /* why it could not be opened, for those that wait */
	char                 lost[300]; /* why an earlier jail of this name is gone, until a call was told; "": none is */
	int64_t              lost_ms;
	uint64_t             idle_ms;  /* after so long without a call brigd ends it */
};

/* All of one brig-mcp; whose they are, and how many there may be, is named_sessions.h. */
struct named_sessions {
	struct mcp                 *mcp;
	TAILQ_HEAD(, named_session) all;
};

/* Closed. It is gone with the next turn of the loop unless something has entered it. NULL: no memory. */
must_use struct named_session *named_session_create(struct mcp *m, const char *owner, const char *name);
void                           named_session_destroy(struct named_session *s);

/* Of one that is closed: what it is opened with next. Takes both over. */
void named_session_prepare(struct named_session *s, json_t *asked, json_t *message);

/* Opens it if need be. u is told later, not within this call. */
void named_session_enter(struct named_session *s, struct session_use *u);
void named_session_leave(struct session_use *u); /* may be called on one of none; the session may be gone then */

/* brigd knows no session of this id any more; message: as it said so. */
void named_session_gone(struct named_session *s, const char *id, const char *message);
/* Its client ends it: brigd ends calls under way, those that wait are refused. It is gone soon. */
void named_session_end(struct named_session *s);
