/*
 * file_entries.h - entries of files as they come from a jail, in pieces of any size (brig-protocol(7), FILES).
 *
 * Pure. All of it is hostile: names are plain paths and kinds are known when they are told, and that is all that is sure. How much
 * may come is for the reader to bound, who says when it is enough.
 */
#pragma once
#include "file_stream.h"

struct file_entries_reader {
	/* What a header says: a file, whose bytes follow; a match that is left out; one that is listed. false: enough has come. */
	bool (*entry)(void *owner, const struct file_entry *entry, const char *name);
	bool (*bytes)(void *owner, const char *bytes, size_t len);
};

/* Zero at first. */
struct file_entries {
	struct file_entry entry; /* that comes, and how much of it has: header, name, then left bytes */
	size_t            header_at, name_at;
	uint64_t          left;
	char              name[FILE_NAME_BYTES + 1];
};

enum file_entries_answer {
	ENTRIES_GO_ON,
	ENTRIES_ENOUGH, /* the reader said so */
	ENTRIES_END,    /* of the list; what follows is not looked at */
	ENTRIES_BROKEN, /* *e says what makes no sense */
};

must_use enum file_entries_answer file_entries_take(struct file_entries *f, const char *bytes, size_t len, const struct file_entries_reader *reader, void *owner,
						    struct err *e);
