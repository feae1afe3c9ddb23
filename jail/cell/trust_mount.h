/*
 * trust_mount.h - the certificates that programs of a profile trust, as a mount
 *
 * A small file system with one file, NET_TRUST_PATH: the rootfs's own bundle, then the CA with which brig-proxy signs. It can be
 * written to by no process once it is made.
 */
#pragma once
#include "err.h"
#include "mount_plan.h"

/*
 * A mount that lies nowhere yet, with the attributes of step. trust_fd: PEM, a sealed memory file; tree_fd: of the rootfs. Both are
 * the caller's.
 */
must_use int trust_mount_make(int trust_fd, int tree_fd, const struct mount_step *step, struct err *e);
