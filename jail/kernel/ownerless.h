/*
 * ownerless.h - a user namespace in which files of the host have no owner.
 *
 * A mount that is seen through it cannot be written to in any way: the kernel
 * refuses every write to a file whose owner it cannot name, and connecting to a
 * socket or filling a fifo is one, which a read-only mount does not stop.
 */
#pragma once
#include "err.h"

/* A descriptor of the namespace, for mount_setattr(). `id` is one that belongs to nobody. */
must_use int ownerless_open(uint32_t id, struct err *e);
