/*
 * peer.h - which user and process are at the other end of a connection, as the kernel reports it.
 *
 * The kernel is asked when the connection is accepted; at a reload the groups are asked
 * for again. It names the process that called connect(), also when that passes the socket
 * on later. When the kernel gives no answer, the client is refused (in CVE-2021-3560
 * polkit took that for root).
 */
#pragma once
#include "err.h"

#include <sys/types.h>

enum { PEER_GROUPS_MAX = 1024 };

struct peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	char  comm[32]; /* for people and the log: the process chose it; "?": it had ended already */
};

#define PEER_UNKNOWN ((struct peer){ .uid = (uid_t)-1, .gid = (gid_t)-1, .comm = "?" })

/* What this peer has asked for may be seen and ended by its own user, and by root. */
static inline bool peer_is_shown_to(const struct peer *p, uid_t uid)
{
	return uid == 0 || p->uid == uid;
}

/* Supplementary groups at the moment of connect(). */
struct peer_groups {
	gid_t  gid[PEER_GROUPS_MAX];
	size_t n;
};

/* May be called again later: the kernel still gives the groups of the moment of connect(). */
must_use int peer_read_groups(struct peer_groups *ret, int sock, struct err *e);
must_use int peer_identify(struct peer *ret, struct peer_groups *groups, int sock, struct err *e);
bool         peer_has_group(const struct peer *p, const struct peer_groups *groups, gid_t gid);
