/*
 * audit_file.h - lines in a file that never grows beyond its bounds.
 *
 * NAME and its predecessors, NAME.1 (the youngest) to NAME.keep, lie in one folder
 * that is opened once. Together they have at most (keep + 1) * max_bytes. A line is
 * one write() and is never split between two files. Files are open for writing only:
 * an attacker who takes over the server cannot read what other users did.
 */
#pragma once
#include "err.h"

#include <sys/types.h>

enum { AUDIT_KEEP_MAX = 99 };

struct audit_file {
	int      folder, fd; /* -1: no file */
	char     name[64];
	uint64_t max_bytes;
	unsigned keep;
	dev_t    dev;
	ino_t    ino;
	bool     torn; /* the file may not end with a newline */
};
#define AUDIT_FILE_NONE ((struct audit_file){ .folder = -1, .fd = -1 })

/* The folder must exist, and not be writable by all users. Predecessors beyond keep are removed. */
must_use int audit_file_open(struct audit_file *ret, const char *path, uint64_t max_bytes, unsigned keep,
			     struct err *e);
/* line: with its newline. 0, or -errno: this line is lost; the next call tries the file again. */
must_use int audit_file_append_line(struct audit_file *f, const char *line, size_t len);
void         audit_file_close(struct audit_file *f);
