/*
 * file.h - whole files, whole writes.
 *
 * Sizes are bounded, a short write is an error, and every descriptor is
 * close-on-exec, except those of file_open_standard_fds().
 */
#pragma once
#include "err.h"

struct bytes {
	char  *data; /* NUL-terminated for convenience; len does not count it */
	size_t len;
};
void bytes_done(struct bytes *b);
#define scoped_bytes scoped(bytes_done) struct bytes

/* Reads to the end; more than max bytes are an error. path is for the message only. The caller frees *ret with bytes_done(). */
must_use int file_read_fd(int fd, const char *path, size_t max, struct bytes *ret, struct err *e);
must_use int file_read(int dir, const char *path, size_t max, struct bytes *ret, struct err *e);

/*
 * Call before anything else is opened: opens /dev/null for those of descriptors
 * 0, 1 and 2 that are closed. The next file opened would otherwise become a
 * standard stream. 0 or -1 with errno.
 */
must_use int file_open_standard_fds(void);

struct statx;
/*
 * The type and the device of a file, from the kernel's cache alone: the server of its file system (FUSE, NFS) is not
 * asked, and cannot make the caller wait. 0 or -1 with errno.
 */
must_use int file_stat_type(int fd, struct statx *ret);

/* Writes the whole buffer; retries on EINTR, and polls a descriptor that does not block. Returns 0 or -1 with errno. */
must_use int file_write_all(int fd, const void *bytes, size_t len);
/* For kernel files: open, write once, close. Returns 0 or -1 with errno. */
must_use int file_write_existing(int dir, const char *path, const char *text);
