/*
 * rootless.h - the user namespace in which a plain user's launcher is root.
 *
 * Root needs none. For other users, and for uid 0 without CAP_SYS_ADMIN or CAP_NET_ADMIN, the launcher enters P, a user
 * and a mount namespace of its own, and then makes the same system calls in it that root's launcher makes on
 * the host, with the ids and capabilities that P has. P has
 *
 *   a range   the caller as 0 and the caller's subordinate ids from 1 on. Only
 *             newuidmap and newgidmap may map those; they check them against
 *             /etc/subuid and /etc/subgid, and are run outside of P, by fixed
 *             paths, without an environment;
 *   one id    the caller as 0 and no other id, where there is no range: program
 *             and PID 1 then have the caller's own host id and groups.
 *
 * The monitor of a service makes P itself, with ids that no account has (ROOTLESS_KEPT). Such a P gives
 * the same guarantees as root's launcher.
 *
 * A directory that was opened before must be opened again in P: the kernel does
 * not clone a mount of another mount namespace (detach_reopen_path()). Owners of
 * files look different in P, so they must be checked before.
 */
#pragma once
#include "err.h"
#include "id_range.h"

enum rootless_kind { ROOTLESS_NONE, ROOTLESS_RANGE, ROOTLESS_SINGLE, ROOTLESS_KEPT };

struct rootless {
	enum rootless_kind kind;
	struct id_range    ids;      /* for cells, as the launcher sees them; SINGLE: count 1 */
	char               why[200]; /* SINGLE: why there is no range */
	const char        *fix;      /* SINGLE: what to do about it; NULL: use sub_ids_format_advice() */
};

/* Linux 5.12: uid 0 can be mapped only if the process that made the namespace has CAP_SETFCAP. */
#define ROOTLESS_ROOT_CAUSE "root without CAP_SETFCAP may not have itself in a user namespace"
#define ROOTLESS_ROOT_FIX   "run brig as another user, or give it CAP_SETFCAP"

/* Changes the calling process for good. After a failure it may be changed in part, and must not run anything. */
must_use int rootless_enter(struct rootless *ret, struct err *e);
