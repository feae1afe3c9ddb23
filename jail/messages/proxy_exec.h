/* proxy_exec.h - a process becomes brig-proxy, and keeps nothing but the descriptors for it */
#pragma once
#include "defs.h"

/*
 * program: the executable; sock, config: proxy_protocol.h; lock: held open for as long as the process lives, or -1.
 * Standard error stays as it is. Returns only on failure, with errno.
 */
void proxy_exec(int program, int sock, int config, int lock);
