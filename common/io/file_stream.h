/*
 * file_stream.h - the stream that carries files into a run and out of it: brig-protocol(7), FILES
 *
 * Entries follow each other on one stream socket: a header of a fixed size, the name, the bytes. Each side treats the other as
 * hostile: a name is a path of plain components, which are opened one after the other without following links.
 */
#pragma once
#include "defs.h"
#include "err.h"

#include <sys/types.h>

enum { FILE_NAME_BYTES = 1024, FILE_DEPTH_MAX = 32, FILE_GETS_MAX = 64 };

enum file_kind {
	FILE_END,        /* the last entry, in each direction; its name is not checked */
	FILE_REGULAR,
	FILE_EXECUTABLE, /* a regular file with mode 0755 instead of 0644 */
	FILE_GET,        /* from the client, after its files: a pattern of files that it wants; bytes may be FILE_GET_FOLDERS, none follow */
	FILE_LEFT,       /* to the client: a file that matches and is left out; the member bytes is an enum file_left, no bytes follow */
	FILE_LIST,       /* sessions only. From the client: a pattern of files to list. To the client: a file; bytes is its size, none follow */
	FILE_FOLDER,     /* an empty directory: among the files of the client, and to one that sent FILE_GET_FOLDERS; no bytes */
	/*
	 * Sessions only. STAT: from the client, among its patterns: a path, "" for /workspace; bytes is how many levels below it are
	 * described, too. To the client: a struct file_status and the target of a link follow. RENAME and REMOVE: among the
	 * files of the client. The path's new name follows; bytes is FILE_REMOVE_TREE or 0, none follow.
	 */
	FILE_STAT,
	FILE_RENAME,
	FILE_REMOVE,
	FILE_KINDS,
};

enum { FILE_GET_FOLDERS = 1 }; /* the client knows FILE_FOLDER */
enum { FILE_REMOVE_TREE = 1 }; /* a directory with all that is in it */

enum file_left {
	FILE_LEFT_link,
	FILE_LEFT_special,
	FILE_LEFT_size,
	FILE_LEFT_unreadable,
	FILE_LEFT_deep,
	FILE_LEFT_room,
	FILE_LEFT_unwritable,
	FILE_LEFT_changed,
	FILE_LEFT_missing,
	FILE_LEFT_not_empty,
	FILE_LEFT_COUNT,
};

/* In the byte order of the machine. */
struct file_entry {
	uint32_t kind, name_len;
	uint64_t bytes;
};

/* What FILE_STAT has of a path, in the byte order of the machine. */
struct file_status {
	uint32_t mode, zero; /* st_mode */
	uint64_t size;
	int64_t  mtime_ns;
};
enum { FILE_TARGET_BYTES = 4096 };

/* "link", "special", ... */
const char *file_left_reason_name(enum file_left why);

/* NULL: the name is a plain relative path; else what is wrong with it, like "has . or .. in it" */
const char *file_name_find_fault(const char *name, size_t len);

/*
 * A pattern names files, or directories with everything in them; *, ? and [] do not match a slash, a component ** stands for any number
 * of directories. file_pattern_normalize() takes it as people write it, with /workspace/, ./ or a slash at its end; a pattern of nothing else is
 * that of all files. NULL, or what is wrong with it; *ret is "" then, or the part that came first, and is not used.
 */
const char *file_pattern_normalize(const char *pattern, char ret[FILE_NAME_BYTES + 1]);
/* Of a plain pattern: how many bytes of the name matched: whole components from its beginning. 0: no match; "" matches nothing. */
size_t file_pattern_matches(const char *pattern, const char *name);
/* The part of a name that matched which its first ** and the rest of it stand for; NULL: it has no **. */
const char *file_pattern_rest_below(const char *pattern, const char *name);
/*
 * A file or directory whose name begins with a dot is configuration, which other programs obey: .git, .envrc, .bashrc. It comes only if the
 * pattern has the dot, too. Returns how many bytes of a name that matches lead to the first such component that does not come; 0: it comes.
 */
size_t file_pattern_hidden_length(const char *pattern, const char *name);

/* Transfer exactly len bytes, and wait for them; a descriptor that does not block is polled. -1 with errno; EPIPE: the other side is gone. */
must_use int file_stream_read(int fd, void *bytes, size_t len);
must_use int file_stream_write(int fd, const void *bytes, size_t len);
/* Sends the header and the name. */
must_use int file_stream_write_header(int fd, enum file_kind kind, const char *name, uint64_t bytes);
/* Receives the next header and its name, which is checked with file_name_find_fault() (not that of FILE_END). The pattern of a FILE_GET is made plain; it is
 * "" if that cannot be. -1 with *e. */
must_use int file_stream_read_header(int fd, struct file_entry *entry, char name[FILE_NAME_BYTES + 1], struct err *e);
/* Copies len bytes. -1 with errno; ENODATA: `from` ended too soon. */
must_use int file_stream_copy(int to, int from, uint64_t len);

/*
 * Creates a file below dir, and the directories on its path, without following links. When the name exists: EEXIST, or, with
 * replace, the regular file is truncated and keeps its mode. The caller's descriptor, or -1 with errno.
 */
must_use int file_stream_create(int dir, const char *name, bool executable, bool replace);
/* Creates a directory in the same way. It may exist. */
must_use int file_stream_make_folder(int dir, const char *name);
