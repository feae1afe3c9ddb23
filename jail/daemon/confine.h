/*
 * confine.h - a door that was taken over can do nothing but what a door does.
 *
 * Everything that it needs is open by then. What is left to it: talk through
 * the sockets it has, accept clients, make memory files and pipes, read below
 * /proc, and write the audit into its folder. No other file, no program, no
 * network, no new socket but pairs of them.
 */
#pragma once
#include "err.h"

/* folder: where the audit may write, -1 for nowhere. *names: what is in force, for stats; NULL at the end. */
must_use int confine_door(int folder, const char *const **names, struct err *e);
