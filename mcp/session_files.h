/*
 * session_files.h - files are moved into an open session or out of it, beside its calls.
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
	char                         *out; /* owned, until it goes */
	size_t                        out_len;
	const struct transfer_events *events;
	void                         *owner;
};

/* Takes out over: the two lists that go, each with its end. events->ended() comes later, once, unless it was stopped. f must not move. */
void session_files_begin(struct session_files *f, struct named_session *s, char *out, size_t out_len, const struct transfer_events *events, void *owner);
/* Nothing more is told. May be called on one that is zero, or over. */
void session_files_stop(struct session_files *f);
