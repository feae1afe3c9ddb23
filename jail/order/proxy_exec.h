/* proxy_exec.h - a process becomes brig-proxy: its descriptors, and nothing else of what it was */
#pragma once
#include "defs.h"

/*
 * program: the executable; sock, config: proxy_protocol.h; lock: held open for as long as the process lives, or -1. Its standard
 * error stays. Returns only when it fails, with errno.
 */
void proxy_exec(int program, int sock, int config, int lock);
