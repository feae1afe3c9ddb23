/*
 * missing.h - a program that imports what is not there: where it is, or what is there instead.
 */
#pragma once
#include "call.h"
#include "outcome.h"

/* True: it ended for want of a module, and the call will be answered when the profiles were asked; *o is taken over. */
bool missing_answer(struct call *c, struct outcome *o, const struct answer_wish *wish);
