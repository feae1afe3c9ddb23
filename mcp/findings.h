/*
 * findings.h - what the static check said, in the words of validate_code.
 *
 * Advice and policy: a program that passes is not safe, and one that does not
 * may be harmless.
 */
#pragma once
#include "execution.h"

/* The object of validate_code, from a run of mode check that has ended; new reference. When the check itself failed it says so, and is not valid. */
json_t *findings_json(const struct execution *x);

/* {valid, errors, message}: of findings_json(), for a refusal of execute_code. */
json_t *findings_short(const json_t *findings);
