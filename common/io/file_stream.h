/*
 * file_stream.h - files of a run on their way in and out: brig-protocol(7), FILES
 *
 * Over one stream socket, entries one after the other: a header of a fixed size, the name, the bytes. Both sides treat what comes
 * as hostile: a name is a path of plain components, and is opened one component after the other without following links.
 */
#pragma once
#include "defs.h"
#include "err.h"

#include <sys/types.h>

enum { FILE_NAME_BYTES = 1024, FILE_DEPTH_MAX = 32, FILE_GETS_MAX = 64 };

enum file_kind {
	FILE_END,        /* of what the client sends, and of what comes back */
	FILE_REGULAR,
	FILE_EXECUTABLE, /* the same, with mode 0755 instead of 0644 */
	FILE_GET,        /* from the client, behind its files: a pattern of what it wants; no bytes */
	FILE_LEFT,       /* to the client: matches, and is left out; bytes: enum file_left, and none follow */
	FILE_LIST,       /* of a session. From the client, beside GET: a pattern of what it wants to hear of; to the client: bytes is the size, and none follow */
};

enum file_left { FILE_LEFT_link, FILE_LEFT_special, FILE_LEFT_size, FILE_LEFT_unreadable, FILE_LEFT_deep, FILE_LEFT_room, FILE_LEFT_unwritable, FILE_LEFT_changed, FILE_LEFT_COUNT };

/* In the byte order of the machine. */
struct file_entry {
	uint32_t kind, name_len;
	uint64_t bytes;
};

/* "link", "special", ... */
const char *file_left_name(enum file_left why);

/* NULL: fits; else what is wrong with it, like "climbs out with .." */
const char *file_name_fault(const char *name, size_t len);

/*
 * A pattern names files, or directories with all that is in them: *, ? and [] stop at a slash. How many bytes of the name it
 * matched, which end before a slash or at its end; 0: it does not match.
 */
size_t file_pattern_matches(const char *pattern, const char *name);

/* All or nothing, and waits; a descriptor that does not block is polled. -1 with errno; EPIPE: the other side is gone. */
must_use int file_stream_read(int fd, void *bytes, size_t len);
must_use int file_stream_write(int fd, const void *bytes, size_t len);
/* The header and the name. */
must_use int file_stream_put(int fd, enum file_kind kind, const char *name, uint64_t bytes);
/* The next header, and the name, which is sound. -1 with *e. */
must_use int file_stream_next(int fd, struct file_entry *entry, char name[FILE_NAME_BYTES + 1], struct err *e);
/* So many bytes from one to the other; `from` ended too soon: ENODATA. */
must_use int file_stream_copy(int to, int from, uint64_t len);

/*
 * Below dir, without following links: a new file, with the directories that it needs. EEXIST: there is one already; replace: then
 * it is written anew. -1 with errno.
 */
must_use int file_stream_create(int dir, const char *name, bool executable, bool replace);
