/*
 * session_files.h - moves files into an open session or out of it, at the same time as its calls.
 */
#pragma once
#include "named_session.h"
#include "transfer.h"

struct session_files {
	struct mcp                   *mcp; /* NULL: nothing is being moved */
	struct session_use            use;
	struct question               question;
	json_t                       *message;
	struct transfer               transfer;
	struct loop_timer             patience;
	char                         *out; /* owned, until transfer has it */
	size_t                        out_len;
	const struct transfer_events *events;
	void                         *owner;
};

/*
 * Takes out over: two lists of entries, each with its end, that are sent: first the files to put, then the requests.
 * events->ended() comes later, once, unless session_files_stop() was called. f must not move.
 */
void session_files_begin(struct session_files *f, struct named_session *s, char *out, size_t out_len, const struct transfer_events *events, void *owner);
/* No function of events is called any more. May be called on one that is zero, or over. */
void session_files_stop(struct session_files *f);
