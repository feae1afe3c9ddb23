/* handle_call.h - what wait_execution and cancel_execution have in common: finding the run that is meant */
#pragma once
#include "call.h"
#include "execution.h"

/* NULL: there is no such run; the call was answered, with what to do instead. */
struct execution *handle_call_find_execution(struct call *c, const json_t *arguments);
