/*
 * resume.h - a client of 2026-07-28 calls again, with a person's answer: the run that waited for it goes on.
 */
#pragma once
#include "call.h"

/*
 * Handles a tools/call with a requestState. If the state was given to the same principal, for the same tool and arguments, and
 * was not used before, the call attends the run that has asked. Otherwise the call ends with an error, and nothing changes.
 */
void resume_call(struct call *c);
