/*
 * session_queue.h - a call in a session waits for its turn, then puts its files.
 *
 * It waits no longer than its owner wants. If brigd says that the session is gone, it waits for a new one, once, and puts its
 * files again.
 */
#pragma once
#include "session_files.h"

enum { TURN_BEHIND_MAX = 120 };

struct turn_events {
	void (*go)(void *owner, const char *session); /* it is its turn, until turn_end(). session: its id */
	void (*failed)(void *owner, const struct failure *f); /* it does not get its turn, and has stopped waiting */
};

struct turn {
	struct mcp               *mcp; /* it neither waits nor has its turn */
	struct session_use        use;
	struct session_files      puts;
	char                     *files; /* owned; NULL: none */
	size_t                    files_len;
	char                      left_out[300]; /* the first file that was not put, and why; "" */
	struct loop_timer         patience;
	uint64_t                  timeout_ms;
	bool                      is_again;
	char                      id[RUN_ID_LEN + 1]; /* of the session in which it had its turn; brigd's */
	char                      run[RUN_ID_LEN + 1]; /* the run that it began; "": none yet */
	int64_t                   begun_ms; /* when that was */
	char                      session[PROTOCOL_NAME_MAX + 1]; /* its name; valid after turn_end(), too */
	char                      lost[300];   /* why an earlier session of this name is gone; "": nothing to tell. Valid after turn_end(), too */
	const struct turn_events *events;
	void                     *owner;
};

/* files: see session_files_begin(); taken over; NULL: none. events are called later, not within this call. t must not move. */
void turn_wait(struct turn *t, struct named_session *s, char *files, size_t files_len, uint64_t timeout_ms, const struct turn_events *events, void *owner);
/* Does it wait for its turn, or until its files are put? */
bool turn_is_waiting(const struct turn *t);
/* Its run has begun, which calls behind it are told. */
void turn_begun(struct turn *t, const char *run);
/* The call behind which it waits for its turn: "execution ID, which has run for 12 s". "": it waits for none. Returns buf. */
char *turn_behind(const struct turn *t, char *buf, size_t len);
/* brigd has refused the run with this error. true: because it knows no such session; the call waits for a new one. */
bool turn_again(struct turn *t, const json_t *error);
/* Ends the turn, or the wait for it. May be called twice, and on one that is zero. */
void turn_end(struct turn *t);
