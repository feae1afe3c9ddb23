/*
 * kept_proxy.h - brig-proxy of one profile, as the keeper sees it
 *
 * A process with a host id of its own, no capability and no user namespace of ours. The keeper has no power over it by
 * signals: it ends with its socket, of which both the door and the keeper can cause the end.
 */
#pragma once
#include "err.h"

#include <stdint.h>

struct kept_proxy {
	int    config_fd; /* as the reader sent it; -1: the profile has no network */
	int    pidfd;     /* -1: there is none */
	int    sock;      /* a copy of the door's end; -1: none */
	bool   is_told;   /* the door has its own copy */
	double began, backoff, not_before; /* ms: CLOCK_MONOTONIC, how long to wait, until when */
};
#define KEPT_PROXY_NONE ((struct kept_proxy){ .config_fd = -1, .pidfd = -1, .sock = -1 })

struct kept_proxy_wishes {
	uint32_t id;      /* uid and gid; 0: as the caller is, without a capability */
	int      lock_fd; /* of the ids, or -1 */
};

must_use int kept_proxy_start(struct kept_proxy *p, const struct kept_proxy_wishes *w, struct err *e);
/* By its own will, or it was stopped: it sees the end of its socket now. */
void         kept_proxy_stop(struct kept_proxy *p);
