/*
 * peer.h - who is at the other end of a connection, by the kernel's word.
 *
 * Asked once, when the connection is accepted, about the process that connected:
 * a socket that is passed on stays the first one's. Whatever cannot be answered
 * is an error, and an error is a no (polkit's CVE-2021-3560 took it for root).
 */
#pragma once
#include "err.h"

#include <sys/types.h>

enum { PEER_GROUPS_MAX = 1024 };

struct peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
	char  comm[32]; /* for people and the log: the process chose it; "?" when it is gone already */
};

#define PEER_UNKNOWN ((struct peer){ .uid = (uid_t)-1, .gid = (gid_t)-1, .comm = "?" })

/* What this peer has asked for may be seen and ended by its own user, and by root. */
static inline bool peer_is_shown_to(const struct peer *p, uid_t uid)
{
	return uid == 0 || p->uid == uid;
}

/* Of the moment of connect(). */
struct peer_groups {
	gid_t  gid[PEER_GROUPS_MAX];
	size_t n;
};

/* Of a peer that was identified, once more: still those of connect(). */
must_use int peer_ask_groups(struct peer_groups *ret, int sock, struct err *e);
must_use int peer_identify(struct peer *ret, struct peer_groups *groups, int sock, struct err *e);
bool         peer_has_group(const struct peer *p, const struct peer_groups *groups, gid_t gid);
