/*
 * waiter.h - one call waits for one run: progress meanwhile, then its result, or a handle if it takes longer
 */
#pragma once
#include "call.h"
#include "execution.h"

/*
 * Answers the call when the run has ended, or after wait_ms with the output so far and a handle; 0: never before the
 * end. A call that is cancelled ends a run that has no handle. The run may have ended before.
 */
void call_wait_for_run(struct call *c, struct execution *x, uint64_t wait_ms);

/*
 * A client of 2026-07-28 calls again, with a person's answer: handles a tools/call with a requestState. If the state
 * was given to the same principal, for the same tool and arguments, and was not used before, the call attends the run
 * that has asked. Otherwise the call ends with an error, and nothing changes.
 */
void call_resume_wait(struct call *c);
