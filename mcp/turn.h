/*
 * turn.h - how a call in a session comes to its turn there: it waits for it, and puts its files.
 *
 * It waits no longer than its owner wants. If the session turns out to be gone it waits for a new one, once, and puts its files again.
 */
#pragma once
#include "session_files.h"

struct turn_events {
	void (*go)(void *owner, const char *session); /* the id of the session: it is its turn, until turn_end() */
	void (*failed)(void *owner, const struct failure *f); /* it has none, and waits no longer */
};

struct turn {
	struct mcp               *mcp; /* NULL: it is in no session */
	struct session_use        use;
	struct session_files      puts;
	char                     *files; /* owned; NULL: none */
	size_t                    files_len;
	char                      left_out[300]; /* the first of them that was not put, and why; "" */
	struct loop_timer         patience;
	uint64_t                  patience_ms;
	bool                      is_again;
	char                      id[RUN_ID_LEN + 1]; /* of the session in which it had its turn */
	char                      session[PROTOCOL_NAME_MAX + 1]; /* its name; stays */
	char                      lost[300];   /* why an earlier session of this name is gone; "": none is, or it was told. Stays */
	const struct turn_events *events;
	void                     *owner;
};

/* files: both lists (session_files.h), taken over; NULL: none. Is told later, not within this call. t must not move. */
void turn_wait(struct turn *t, struct named_session *s, char *files, size_t files_len, uint64_t patience_ms, const struct turn_events *events, void *owner);
/* Does it wait for its turn, or for its files to be put? */
bool turn_is_waiting(const struct turn *t);
/* brigd refused the run; error: its answer. true: it knows no such session, and the call waits for a new one. */
bool turn_again(struct turn *t, const json_t *error);
/* The next one has its turn. May be called twice, and on one that is zero. */
void turn_end(struct turn *t);
