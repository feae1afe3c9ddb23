/*
 * file.h - whole files, whole writes.
 *
 * Nothing here follows a surprise: sizes are bounded, a short write is an
 * error, every descriptor is close-on-exec.
 */
#pragma once
#include "err.h"

struct bytes {
	char  *data; /* NUL-terminated for convenience; len does not count it */
	size_t len;
};
void bytes_done(struct bytes *b);
#define scoped_bytes scoped(bytes_done) struct bytes

/* Reads at most max bytes; a larger file is an error that names both sizes. path is for the message only. */
must_use int file_read_fd(int fd, const char *path, size_t max, struct bytes *ret, struct err *e);
must_use int file_read(int dir, const char *path, size_t max, struct bytes *ret, struct err *e);

/*
 * Before anything else is opened: descriptors 0, 1 and 2 that the caller closed
 * become /dev/null, or the next thing opened would be taken for a standard
 * stream. 0 or -1 with errno.
 */
must_use int file_fill_standard(void);

/*
 * A file that decides what a jail may do: regular, and not writable by everybody. ENOENT stays in e->errnum,
 * so that the next folder can be tried.
 */
must_use int file_read_rules(const char *path, size_t max, struct bytes *ret, struct err *e);

struct statx;
/*
 * What kind of file it is and where it lies, as far as the kernel knows by itself: who serves its file system is not
 * asked, and cannot make us wait. 0 or -1 with errno.
 */
must_use int file_look(int fd, struct statx *ret);

/* The whole buffer, retrying on EINTR and waiting where the caller's file does not block. Returns 0 or -1 with errno. */
must_use int file_write_all(int fd, const void *bytes, size_t len);
/* For kernel files: open, write once, close. Returns 0 or -1 with errno. */
must_use int file_put(int dir, const char *path, const char *text);
