/* detach.h - a detached copy of one mount of the host, for a cell to attach */
#pragma once
#include "err.h"

/* Private, with attrs (MOUNT_ATTR_*), without the mounts below it; the caller's. what: for messages. */
must_use int detach_clone_mount(int from, uint64_t attrs, const char *what, struct err *e);

/*
 * Opens the directory or file `from` again in the caller's mount namespace: the kernel clones no mount of another
 * one. It is found by its path, and fails if that leads to another inode by now. The descriptor is the caller's.
 */
must_use int detach_reopen_path(int from, const char *what, struct err *e);
