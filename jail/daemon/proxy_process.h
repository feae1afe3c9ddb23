/*
 * proxy_process.h - brig-proxy of a private door: a process of its own, with as little as can be had
 *
 * Root's gets a host id that no account and no cell has; so does a plain user's, in a user namespace, where newuidmap gives the
 * user some. Elsewhere it is a process of that user without a capability. (A service's are started by its keeper.)
 */
#pragma once
#include "err.h"
#include "place.h"

/*
 * Forks, and does not wait: *ret_sock is the door's end of its socket (proxy_protocol.h), and sees the end of a process that could not
 * begin, which says why on standard error. program: from libexec_open(), borrowed. config: a sealed memory file with struct proxy_config, borrowed.
 */
must_use int proxy_start(const struct places *places, int program, int config, int *ret_sock, struct err *e);
