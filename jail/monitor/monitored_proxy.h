/*
 * monitored_proxy.h - brig-proxy of one profile, as the monitor sees it
 *
 * A process without capabilities; in a service with a host id of its own, outside of P. The monitor may have no right
 * to signal it: it ends at the end of file on its socket, which both the server and the monitor can cause.
 */
#pragma once
#include "cg.h"

#include <stdint.h>

struct monitored_proxy {
	int    config_fd; /* as the reader sent it; -1: the profile has no network */
	int    pidfd;     /* -1: there is none */
	int    sock;      /* a copy of the server's end; -1: none */
	bool   is_announced; /* the server has its own copy */
	double began, backoff, not_before; /* ms: when it was started, how long the next start waits, until when (CLOCK_MONOTONIC) */
};
#define MONITORED_PROXY_NONE ((struct monitored_proxy){ .config_fd = -1, .pidfd = -1, .sock = -1 })

struct monitored_proxy_options {
	uint32_t id;      /* uid and gid; 0: those of the caller, which keeps no capability either */
	int      lock_fd; /* of the ids, or -1 */
	const struct cg *group; /* of cg_limit_proxy_group(); borrowed */
};

must_use int monitored_proxy_start(struct monitored_proxy *p, const struct monitored_proxy_options *w, struct err *e);
/* brig-proxy has ended, or is to end: it gets end of file on its socket. config_fd stays open. */
void         monitored_proxy_shut_down(struct monitored_proxy *p);
