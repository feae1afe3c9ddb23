/*
 * sealed.h - bytes in a memory file that nobody can change any more.
 *
 * What is passed on to be read by somebody with other rights must not change
 * under its reader, nor shrink: a mapping of it would then kill the reader.
 */
#pragma once
#include "err.h"

/* A new one, not executable; the caller's descriptor. -1 with *e. */
must_use int sealed_open(const char *name, const void *bytes, size_t len, struct err *e);

/*
 * The same, filled where it lies: bytes that are not written to take no memory. fill gets len zeros; -1 with *e if it fails. The
 * caller's descriptor.
 */
must_use int sealed_fill(const char *name, size_t len, int (*fill)(void *bytes, void *arg, struct err *e), void *arg, struct err *e);

/* One of zeros, for ever of this size; each process that has it may write to it. The caller's descriptor. -1 with *e. */
must_use int memory_open(const char *name, size_t size, struct err *e);

/*
 * Is this a memory file with the seals WRITE, SHRINK and GROW? Opens and reads nothing: safe for a stranger's
 * descriptor. 0 and its size, or -1 with what is wrong with it.
 */
must_use int sealed_check(int fd, size_t max, size_t *len, struct err *e);
