/*
 * launcher.h - the process that builds the one cell of a private run, watches it and takes it down.
 *
 * Forked by run_start(), in a session of its own so that Ctrl-C reaches only the
 * client. It takes its own ids, groups and filter.
 */
#pragma once
#include "run_order.h"

#include <time.h>

_Noreturn void launcher_main(const struct run_order *order, int sock, const struct timespec *asked);
