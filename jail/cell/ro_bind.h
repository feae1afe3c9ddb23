/*
 * ro_bind.h - a directory or file of the host as --ro shows it: readable, and nothing else.
 *
 * A read-only mount does not keep a program from connecting to a socket or
 * writing into a pipe that lies in it: the kernel asks only who may write to
 * the inode. The mount is therefore id-mapped to a user namespace that maps
 * no owner of any file, and then no process may write to any inode of it
 * (inode_permission(), 5.12; the file system must support id-mapped mounts:
 * ext4, xfs, btrfs, tmpfs from 6.3).
 */
#pragma once
#include "err.h"

/*
 * A detached mount of fd, without the mounts below it; the descriptor is the caller's. *inert: it is id-mapped, so
 * programs cannot use its sockets and pipes either. attrs: MOUNT_ATTR_*, of the plan's step. spare_id: a host id that
 * owns no file.
 */
must_use int ro_bind_open_mount(int fd, uint64_t attrs, uint32_t spare_id, bool *inert, struct err *e);
