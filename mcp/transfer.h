/*
 * transfer.h - files on their way into a cell's /workspace and out of it, over one socket (brig-protocol(7), FILES).
 *
 * Driven by the loop. What goes is one piece of memory, which transfer_add() fills; what comes is told entry by entry
 * (file_entries.h). How much may come, and for how long, is for the owner to bound.
 */
#pragma once
#include "file_entries.h"
#include "mcp.h"

#include <stdio.h>

struct transfer_events {
	struct file_entries_reader read;
	/* Nothing more comes. why: what was wrong with it, or NULL. The last call; t is closed, and may be freed now, not before. */
	void (*ended)(void *owner, const struct err *why);
};

struct transfer {
	struct mcp                   *mcp; /* NULL: it is not open */
	struct loop_source            source;
	const struct transfer_events *events;
	void                         *owner;
	char                         *out;  /* owned */
	size_t                        out_len, out_at;
	struct file_entries           in;
};

/* An entry of what goes, and the bytes of a file. */
void transfer_add(FILE *out, enum file_kind kind, const char *name, const void *bytes, size_t len);

/* Takes fd and out over, also when it fails. t must not move. */
must_use int transfer_open(struct transfer *t, struct mcp *m, int fd, char *out, size_t out_len, const struct transfer_events *events, void *owner,
			   struct err *e);
void         transfer_close(struct transfer *t); /* may be called twice, and on one that is zero */
