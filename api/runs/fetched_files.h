/*
 * fetched_files.h - files that came out of a jail, as {PATH: BASE64} of an answer. All of it is hostile.
 */
#pragma once
#include "file_entries.h"

#include <jansson.h>

enum { FETCHED_ENTRIES_MAX = 4096 };
#define FETCHED_BYTES_MAX (32 * MIB) /* of all files together */

/* Zero it before the first use. */
struct fetched_files {
	const json_t *asked; /* paths; nothing else is taken; borrowed */
	size_t  entries;
	json_t *files;   /* owned */
	json_t *left;    /* texts: what was left out, and why; owned */
	char   *bytes;   /* of the file that is being read */
	size_t  len, room;
	uint64_t wanted, sum;
	char    name[FILE_NAME_BYTES + 1];
	bool    is_open;
};

/* owner: struct fetched_files. */
extern const struct file_entries_reader fetched_files_reader;

/* No more comes: the last file is closed. */
void fetched_files_finish(struct fetched_files *f);
void fetched_files_done(struct fetched_files *f);
