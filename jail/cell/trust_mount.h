/*
 * trust_mount.h - the certificates that programs of a profile trust, as a mount
 *
 * A small file system with one file, NET_TRUST_PATH: the rootfs's own bundle, then the CA with which brig-proxy
 * signs. Once it is made, no process can write to it.
 */
#pragma once
#include "err.h"
#include "mount_plan.h"

/*
 * A detached mount with the attributes of step; the descriptor is the caller's. trust_fd: PEM, a sealed memory file;
 * tree_fd: the rootfs. Both stay the caller's.
 */
must_use int trust_mount_make(int trust_fd, int tree_fd, const struct mount_step *step, struct err *e);
