/*
 * missing_module.h - a program has imported a module that is not there: names the profile that has it, or what there is
 * instead
 */
#pragma once
#include "call.h"
#include "outcome.h"

/*
 * true: it ended because a module is missing; the call will be answered when the profiles were asked. *o is taken
 * over then.
 */
bool missing_module_answer_later(struct call *c, struct outcome *o, const struct answer_form *answer_form);
