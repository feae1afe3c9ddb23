/*
 * transfer.h - moves files into a cell's /workspace and out of it, over one socket (brig-protocol(7), FILES).
 *
 * The loop drives it. What is sent is one piece of memory, which transfer_add_entry() fills; what is received is
 * reported entry by entry (file_entries.h). The owner must limit how much may come, and for how long.
 */
#pragma once
#include "brigd_link.h"
#include "file_entries.h"

#include <stdio.h>

struct transfer_events {
	struct file_entries_reader read;
	/*
	 * The transfer is over. why: what went wrong, or NULL. This is the last call: t is closed, and may be freed
	 * now, but not before. NULL: ignored.
	 */
	void (*ended)(void *owner, const struct err *why);
};

struct transfer {
	struct loop                  *loop; /* NULL: it is not open */
	struct loop_source            source;
	struct brigd_link            *link; /* of a session, as question and message; NULL: the socket was there */
	struct question               question;
	json_t                       *message;
	bool                          is_session_gone; /* after ended(): brigd knows no such session */
	const struct transfer_events *events;
	void                         *owner;
	char                         *out;  /* owned */
	size_t                        out_len, out_at;
	struct file_entries           in;
};

/* Appends an entry to what is sent, and the bytes of a file. */
void transfer_add_entry(FILE *out, enum file_kind kind, const char *name, const void *bytes, size_t len);

/* Takes fd and out over, even if it fails. t must not move. */
must_use int transfer_open(struct transfer *t, struct loop *loop, int fd, char *out, size_t out_len,
			   const struct transfer_events *events, void *owner, struct err *e);
/* The same over a socket that brigd opens for the files of a session, by its id. Takes out over, even if it fails. */
must_use int transfer_ask(struct transfer *t, struct brigd_link *link, const char *session, char *out, size_t out_len,
			  const struct transfer_events *events, void *owner, struct err *e);
void         transfer_close(struct transfer *t); /* may be called twice, and on one that is zero */
