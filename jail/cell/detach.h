/* detach.h - one mount of the host as a copy that lies nowhere, for a cell to attach */
#pragma once
#include "err.h"

/* Without what is mounted below it, private, with these MOUNT_ATTR_*. what: for the message. The descriptor is the caller's. */
must_use int detach_mount(int from, uint64_t attrs, const char *what, struct err *e);

/*
 * The same directory or file by a descriptor that belongs to the mount namespace we are in now: no other can be
 * detached. Found by its path, and proven to be the same one.
 */
must_use int detach_open_again(int from, const char *what, struct err *e);
