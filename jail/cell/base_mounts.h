/*
 * base_mounts.h - the mount namespace of the process that builds cells, of which PID 1 of each cell gets a copy
 *
 * A copy costs as much as there are mounts, and hosts have dozens. So the process leaves the one that it was started in: its own has a
 * /proc, and the rootfs with the devices over it, ready to be cloned as one tree. What lies on the host, directories to show and
 * another rootfs, it opens in the namespace that it came from.
 */
#pragma once
#include "err.h"
#include "mount_plan.h"
#include "store.h"

struct base_mounts {
	bool is_root;         /* no user namespace lies between what opens files on the host and this process: rootless.h */
	int  host_fd, own_fd; /* mount namespaces: the one it came from, and its own */
	int  trust_fd; /* borrowed: certificates for programs, in every clone (trust_mount.h); -1: none. Set before the first one */
	int  tree_fd;                   /* what is mounted now; -1: nothing yet */
	char digest[STORE_DIGEST + 1];  /* of it */
};
#define BASE_MOUNTS_NONE ((struct base_mounts){ .host_fd = -1, .own_fd = -1, .trust_fd = -1, .tree_fd = -1 })

/* The calling process moves for good, to the root of its own mounts. It needs CAP_SYS_ADMIN and a /proc. */
must_use int base_mounts_open(struct base_mounts *ret, bool is_root, struct err *e);

/* For what lies on the host. A process that cannot enter its own again must not build cells any more; one that has not moved is there. */
must_use int base_mounts_enter_host(const struct base_mounts *b, struct err *e);
must_use int base_mounts_enter_own(const struct base_mounts *b, struct err *e);
/* There: the same directory or file by a descriptor from which a mount can be cloned; the caller's. what: for messages. */
must_use int base_mounts_reach(const struct base_mounts *b, int from, const char *what, struct err *e);

/*
 * The rootfs with its devices as a tree of mounts that lies nowhere, for one cell or zygote: the caller's. It is mounted first if another one
 * is, or none. tree: as found in the store; name: for messages. The process may be on the host after a failure.
 */
must_use int base_mounts_clone(struct base_mounts *b, const struct store_tree *tree, const char *name, struct err *e);
