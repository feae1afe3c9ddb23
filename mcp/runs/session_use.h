/*
 * session_use.h - the two uses of a session: files that are moved into it or out of it, and a call that waits for the
 * interpreter.
 */
#pragma once
#include "named_session.h"
#include "transfer.h"

/* Moves files at the same time as the session's calls. Its owner limits how much may come. */
struct session_files {
	struct mcp                   *mcp; /* NULL: it is not under way */
	struct session_use            use;
	char                          id[RUN_ID_LEN + 1]; /* of the session */
	struct transfer               transfer;
	struct loop_timer             late;
	char                         *out; /* owned, until transfer has it */
	size_t                        out_len;
	const struct transfer_events *events;
	void                         *owner;
};

/*
 * Takes out over: two lists of entries, each with its end, that are sent: first the files to put, then the requests.
 * events->ended() comes later, once; it must call session_files_done(). f must not move.
 */
void session_files_start(struct session_files *f, struct named_session *s, char *out, size_t out_len,
			 const struct transfer_events *events, void *owner);
/* No function of events is called any more. May be called on one that is zero, or stopped. */
void session_files_done(struct session_files *f);

enum { QUEUED_BEHIND_MAX = 120 };

/*
 * A call that waits until the session is open and its earlier calls have ended, and then puts its files. It waits no
 * longer than its owner wants. If brigd answers that the session is gone it waits for a new one, once, and puts its
 * files again.
 */
struct queued_call {
	struct mcp                  *mcp; /* NULL: it does not use the session */
	struct session_use           use;
	struct session_files         puts;
	char                        *files; /* owned; NULL: none */
	size_t                       files_len;
	char                         left_out[300]; /* the first file that was not put, and why; "" */
	struct loop_timer            late;
	uint64_t                     timeout_ms;
	bool                         is_again;
	char                         id[RUN_ID_LEN + 1];  /* of the session; brigd's; valid in ready() and later */
	char                         run[RUN_ID_LEN + 1]; /* the run that it began; "": none yet */
	int64_t                      begun_ms; /* when that was */
	char                         session[PROTOCOL_NAME_MAX + 1]; /* its name; valid after queued_call_done(), too */
	/* why an earlier session of this name is gone, or ""; valid after queued_call_done(), too */
	char                         lost[300];
	const struct session_events *events;
	void                        *owner;
};

/*
 * files: see session_files_start(); taken over; NULL: none. events are called later, not within this call. q must not
 * move.
 */
void queued_call_start(struct queued_call *q, struct named_session *s, char *files, size_t files_len,
		      uint64_t timeout_ms, const struct session_events *events, void *owner);
/* Does it wait for earlier calls, or until its files are put? */
bool queued_call_waits(const struct queued_call *q);
/* Its run has begun: calls behind it report it. */
void queued_call_set_run(struct queued_call *q, const char *run);
/* The call behind which it waits: "execution ID, which has run for 12 s"; "" if it waits for no call. Returns buf. */
char *queued_call_print_blocker(const struct queued_call *q, char *buf, size_t len);
/* brigd has refused the run with this error. true: because it knows no such session; the call waits for a new one. */
bool queued_call_retry(struct queued_call *q, const json_t *error);
/* It leaves the session, or the queue. May be called twice, and on one that is zero. */
void queued_call_done(struct queued_call *q);
