/* digest.h - SHA-256 as sixty-four hex digits */
#pragma once
#include "err.h"

#define DIGEST_HEX 64

struct digest {
	void *state;
};
must_use int digest_init(struct digest *d, struct err *e);
must_use int digest_add(struct digest *d, const void *bytes, size_t len, struct err *e);
must_use int digest_finish(struct digest *d, char hex[DIGEST_HEX + 1], struct err *e);
void         digest_done(struct digest *d);
#define scoped_digest scoped(digest_done) struct digest

must_use int digest_compute_of_bytes(const void *bytes, size_t len, char hex[DIGEST_HEX + 1], struct err *e);
/* From the descriptor's offset to end of file; *size: how many bytes were read. path: for messages. */
must_use int digest_compute_of_fd(int fd, const char *path, uint64_t *size, char hex[DIGEST_HEX + 1], struct err *e);
