/*
 * findings.h - the result of the static check, as validate_code reports it.
 *
 * It is advice and policy: a program that passes is not safe, and one that does not pass may be harmless.
 */
#pragma once
#include "call.h"
#include "execution.h"

/*
 * The object that validate_code answers with; new reference. x: a run of mode check that has ended. If the check
 * itself failed the object has the error, and is not valid.
 */
json_t *findings_json(const struct execution *x);

/* {valid, errors, message} of a findings_json(), for a refusal of execute_code. */
json_t *findings_summary_json(const json_t *findings);

/*
 * Starts a check of the code in arguments, brigd's mode check, with the modules that the arguments and the profile
 * (explained) allow; `a` attends it. NULL with *e.
 */
must_use struct execution *findings_start_check(struct call *c, const json_t *arguments, const json_t *explained,
					 struct waiter *a, struct err *e);
