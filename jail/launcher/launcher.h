/*
 * launcher.h - the process that builds the one cell of a private run, watches it and takes it down.
 *
 * Forked by run_start_launcher(), in a session of its own so that Ctrl-C reaches only the
 * client. It is monitor and supervisor in one: it takes ids and control groups, builds the cell as a supervisor does
 * (served_cell.h), and gives up its rights before anything of the run starts in it.
 */
#pragma once
#include "run.h"

#include <time.h>

_Noreturn void launcher_main(const struct launch_args *args, const struct brig_paths *paths, int sock,
			     const struct timespec *asked);
