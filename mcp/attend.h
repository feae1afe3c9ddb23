/*
 * attend.h - one call that waits for one run: progress while it lasts, its result, or a handle when it lasts longer.
 */
#pragma once
#include "call.h"
#include "execution.h"

/*
 * Answers the call when the run has ended, or in wait_ms with what there is
 * so far and a handle; 0: never before the end. A call that is cancelled
 * ends a run that has no handle. The run may have ended already.
 */
void attend(struct call *c, struct execution *x, uint64_t wait_ms);
