/*
 * audit_file.h - lines in a file that never grows beyond its bounds.
 *
 * NAME, and its predecessors NAME.1 (the youngest) to NAME.keep, all in one
 * folder that is opened once: (keep + 1) * max_bytes is the most that lies
 * there. A line is one write() and never half in one file. Only for writing:
 * who takes the door over cannot read what others did.
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
	bool     torn; /* it may not end with a newline */
};
#define AUDIT_FILE_NONE ((struct audit_file){ .folder = -1, .fd = -1 })

/* The folder must be there and not writable by everybody. Predecessors beyond keep are removed. */
must_use int audit_file_open(struct audit_file *ret, const char *path, uint64_t max_bytes, unsigned keep, struct err *e);
/* One line with its newline. 0 or -errno; the line is then lost, and the next may have more luck. */
must_use int audit_file_add(struct audit_file *f, const char *line, size_t len);
void         audit_file_close(struct audit_file *f);
