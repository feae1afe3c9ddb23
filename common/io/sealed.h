/*
 * sealed.h - bytes in a memory file that no process can change any more.
 *
 * Bytes that a process reads for one with other rights must not change while it
 * reads, nor shrink: its mapping of the file would then end in SIGBUS.
 */
#pragma once
#include "err.h"

/* A new sealed file with these bytes, not executable. The caller's descriptor, or -1 with *e. */
must_use int sealed_create(const char *name, const void *bytes, size_t len, struct err *e);

/*
 * A new sealed file of len bytes, which fill() writes in place: it gets a mapping of zeros, and pages that it does not touch take
 * no memory. fill() returns -1 with *e when it fails. The caller's descriptor, or -1 with *e.
 */
must_use int sealed_create_filled(const char *name, size_t len, int (*fill)(void *bytes, void *arg, struct err *e), void *arg, struct err *e);

/* A file of zeros, of a fixed size, not sealed against writes: every process that has it may write. The caller's descriptor, or -1 with *e. */
must_use int sealed_create_fixed_size(const char *name, size_t size, struct err *e);

/*
 * A file of zeros that only the caller can write, through *ret: other processes get the descriptor, and can map it for
 * reading only (F_SEAL_FUTURE_WRITE, Linux 5.1). No fork has *ret. The caller's descriptor, or -1 with *e.
 */
must_use int memfd_create_mapped(const char *name, size_t size, void **ret, struct err *e);

/*
 * Whether this is a memory file of at most max bytes with the seals WRITE, SHRINK and GROW. Opens and reads nothing: safe
 * for a descriptor of a client. 0 and its size, or -1 with what is wrong with it.
 */
must_use int sealed_check(int fd, size_t max, size_t *len, struct err *e);
