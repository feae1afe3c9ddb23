/*
 * base_mounts.h - the mount namespace of the process that builds cells, of which PID 1 of each cell gets a copy
 *
 * The kernel copies every mount, and hosts have dozens. So the process leaves the namespace that it was started in.
 * Its own has only /proc and the rootfs with the devices in it, which can be cloned as one tree. To open something on
 * the host (a directory to show, another rootfs) it goes back to the namespace that it came from.
 */
#pragma once
#include "err.h"
#include "mount_plan.h"
#include "store.h"

struct base_mounts {
	bool is_root;         /* ROOTLESS_NONE: host_fd has what was opened; else base_mounts_reopen_path() opens it again */
	int  host_fd, own_fd; /* mount namespaces: the one it came from, and its own */
	int  trust_fd; /* borrowed: certificates in every clone (trust_mount.h), set before the first; -1: none */
	int  tree_fd;                   /* the rootfs that is mounted now; -1: none yet */
	char digest[STORE_DIGEST + 1];  /* of that rootfs */
};
#define BASE_MOUNTS_NONE ((struct base_mounts){ .host_fd = -1, .own_fd = -1, .trust_fd = -1, .tree_fd = -1 })

/* Moves the caller for good into a mount namespace of its own, and to its root. Needs CAP_SYS_ADMIN and a /proc. */
must_use int base_mounts_open(struct base_mounts *ret, bool is_root, struct err *e);

/* A process that cannot enter its own again must not build cells. enter_own does nothing in one that never moved. */
must_use int base_mounts_enter_host_ns(const struct base_mounts *b, struct err *e);
must_use int base_mounts_enter_own_ns(const struct base_mounts *b, struct err *e);
/* After enter_host: the same directory or file, so that a mount of it can be cloned; the caller's. what: for messages. */
must_use int base_mounts_reopen_path(const struct base_mounts *b, int from, const char *what, struct err *e);

/*
 * A detached tree of mounts, the rootfs with its devices, for one cell or zygote; the descriptor is the caller's. If
 * another rootfs is mounted, or none, this one is mounted first. tree: as found in the store; name: for messages.
 * After a failure the process may be in the host's namespace.
 */
must_use int base_mounts_clone_rootfs(struct base_mounts *b, const struct store_tree *tree, const char *name, struct err *e);
