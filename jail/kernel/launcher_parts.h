/* launcher_parts.h - what both kinds of launcher are made of */
#pragma once
#include "watch.h"

/* A new launcher: its name, its session, its signals. Those that cannot be had are -1 in ->signals. */
void launcher_begin(struct watch *w, const struct run_order *order);

/* A client that is gone is no failure: it is noticed by poll. */
must_use int launcher_say(int sock, const struct launch_word *word, const int *fds, size_t n, struct err *e);

/* The figures, the cell's end, the last word to the client. */
void launcher_finish(struct watch *w);
