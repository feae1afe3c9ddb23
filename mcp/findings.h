/*
 * findings.h - what the static check said, in the words of validate_code.
 *
 * Advice and policy: a program that passes is not safe, and one that does not
 * may be harmless.
 */
#pragma once
#include "call.h"
#include "execution.h"

/* The object of validate_code, from a run of mode check that has ended; new reference. When the check itself failed it says so, and is not valid. */
json_t *findings_json(const struct execution *x);

/* {valid, errors, message}: of findings_json(), for a refusal of execute_code. */
json_t *findings_short(const json_t *findings);

/*
 * Starts the check of arguments' code, as brigd's mode check, with the modules that the arguments and the profile (its
 * explained reply) allow; `a` attends it. The execution, or NULL with *e.
 */
must_use struct execution *findings_seek(struct call *c, const json_t *arguments, const json_t *explained, struct attendant *a, struct err *e);
