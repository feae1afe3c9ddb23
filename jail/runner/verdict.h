/*
 * verdict.h - how a run ended and what it cost, from the kernel's reports alone.
 *
 * Called after the last events of the run and before cell_reap_and_release(), while the control groups still exist.
 * Fills in w->end. If this process has not ended the run, it finds the reason, too, and sends the client its limit.
 */
#pragma once
#include "runner.h"

void verdict_fill_result(struct runner *w);
