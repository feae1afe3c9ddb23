/*
 * verdict.h - how a run ended and what it cost, from what the kernel says alone.
 *
 * Called after the last turn of the watch and before cell_reap(), while the control groups are still there. Fills in
 * w->end. If this process has not ended the run, it finds the reason, too, and tells the client the limit behind it.
 */
#pragma once
#include "runner.h"

void verdict_fill(struct runner *w);
