/*
 * verdict.h - how a run ended and what it cost, from what the kernel says alone.
 *
 * After the last turn of the watch, before cell_reap(): the control groups are still there.
 * Fills w->end; the reason only when nothing that we did was the reason, and then tells the limit behind it.
 */
#pragma once
#include "watch.h"

void verdict_fill(struct watch *w);
