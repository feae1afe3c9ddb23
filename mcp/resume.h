/*
 * resume.h - a client of 2026-07-28 calls again, with what a person has answered: the run that has waited goes on.
 */
#pragma once
#include "call.h"

/*
 * A tools/call with requestState, which is one of ours, not used before, of the
 * same principal, tool and arguments: it attends the run that has asked. Else
 * the call ends with an error, and nothing happens.
 */
void resume_call(struct call *c);
