/*
 * rootless.h - the user namespace in which a plain user's launcher is root.
 *
 * Root needs none. For other users, and for uid 0 without CAP_SYS_ADMIN or CAP_NET_ADMIN, the launcher enters P, a user
 * and a mount namespace of its own, and then does inside of it what root's launcher does on
 * the host: the same calls, with the ids and the power that P has. P has
 *
 *   a range   the caller as 0 and his subordinate ids from 1 on. Only newuidmap
 *             and newgidmap may map those; they decide, by /etc/subuid and
 *             /etc/subgid, and are run outside of P, by fixed paths, without an
 *             environment;
 *   one id    the caller as 0 and nobody else, where there is no range: program
 *             and PID 1 then have the caller's own host id, and his groups.
 *
 * The keeper of a service makes P itself, with ids that no account has (ROOTLESS_KEPT): then
 * all is promised that root's launcher promises.
 *
 * Files from before are to be opened again: the kernel copies no mount of
 * another mount namespace (detach_open_again()). Owners look different inside:
 * who owns what must have been asked before.
 */
#pragma once
#include "err.h"
#include "id_range.h"

enum rootless_kind { ROOTLESS_NONE, ROOTLESS_RANGE, ROOTLESS_SINGLE, ROOTLESS_KEPT };

struct rootless {
	enum rootless_kind kind;
	struct id_range    ids;      /* for cells, as the launcher sees them; SINGLE: count 1 */
	char               why[200]; /* SINGLE: what the range failed for */
	const char        *fix;      /* and what to do about it; NULL: sub_ids_advise() knows */
};

/* Linux 5.12: uid 0 can be mapped only if the process that made the namespace has CAP_SETFCAP. */
#define ROOTLESS_ROOT_CAUSE "root without CAP_SETFCAP may not have itself in a user namespace"
#define ROOTLESS_ROOT_FIX   "run brig as another user, or give it CAP_SETFCAP"

/* Changes the calling process for good. What cannot be undone after a failure does not matter: nothing may run then. */
must_use int rootless_enter(struct rootless *ret, struct err *e);
