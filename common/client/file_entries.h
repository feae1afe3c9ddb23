/*
 * file_entries.h - parses entries of files from a jail, in pieces of any size (brig-protocol(7), FILES).
 *
 * Pure. All of it is hostile. When an entry is reported its name is a plain path and its kind is known; nothing else is
 * certain. The reader must limit how much may come, and stops the parsing when it has enough.
 */
#pragma once
#include "file_stream.h"

/* Either function may be NULL: then what it would get is ignored. */
struct file_entries_reader {
	/*
	 * An entry: a file, whose bytes follow; a match that was left out; or one of a listing. false: enough has
	 * come.
	 */
	bool (*entry)(void *owner, const struct file_entry *entry, const char *name);
	bool (*bytes)(void *owner, const char *bytes, size_t len);
};

/* Zero it before the first use. */
struct file_entries {
	/* the entry that is being read; first its header, then its name, then `left` bytes of the file */
	struct file_entry entry;
	size_t            header_at, name_at;
	uint64_t          left;
	char              name[FILE_NAME_BYTES + 1];
};

enum file_entries_answer {
	ENTRIES_GO_ON,
	ENTRIES_ENOUGH, /* a function of the reader returned false */
	ENTRIES_END,    /* the end of the list; bytes after it were ignored */
	ENTRIES_BROKEN, /* *e: what is invalid */
};

must_use enum file_entries_answer file_entries_parse(struct file_entries *f, const char *bytes, size_t len,
						    const struct file_entries_reader *reader, void *owner,
						    struct err *e);
