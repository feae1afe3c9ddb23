/* launcher_parts.h - what a run is told and ended with, by its own launcher or by a supervisor */
#pragma once
#include "watch.h"

/* A new launcher: its name, its session, its signals. Those that cannot be had are -1 in ->signals. */
void launcher_begin(struct watch *w, const struct run_order *order);

/* A client that is gone is no failure: it is noticed by poll. */
must_use int launcher_say(int sock, const struct launch_word *word, const int *fds, size_t n, struct err *e);

/* What is to be told at the end, from the counters and the kernel's words. Before cell_end(). */
void launcher_sum_up(struct watch *w);
/* The last word to the client. */
void launcher_say_ended(const struct watch *w);
