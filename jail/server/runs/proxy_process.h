/*
 * proxy_process.h - starts the brig-proxy of a private server, with as few rights as possible
 *
 * Under root it gets a host id that no account and no cell has. So it does under a plain user, in a user namespace,
 * where newuidmap gives that user ids; elsewhere it runs as that user, without capabilities. (In a service the monitor
 * starts brig-proxy.)
 */
#pragma once
#include "err.h"
#include "paths.h"

/*
 * Forks, and does not wait. *ret_sock: the server's end of the socket (proxy_protocol.h), which the caller owns. A
 * process that cannot become brig-proxy prints the reason on standard error and exits; the socket then has end of file.
 * program: from libexec_open(). config: a sealed memory file with struct proxy_config. Both are borrowed.
 */
must_use int proxy_process_start(const struct brig_paths *places, int program, int config, int *ret_sock,
				 struct err *e);
