/*
 * policy_floor.h - what no policy file and no profile can allow.
 *
 * Rows with reasons. Policies may choose another errno for a forbidden call,
 * or kill its caller, and that is all. Forbidden values bind their call too:
 * it can only be allowed with a condition that excludes them.
 */
#pragma once
#include "policy.h"

#define POLICY_FLOOR_ROWS 128

/* Every row's call by number on this machine; names it lacks are skipped. */
struct policy_floor {
	int number[POLICY_FLOOR_ROWS];
};

struct policy_floor policy_floor_init(policy_number_fn *number);

/* Sets the forbidden calls to their errno. */
void policy_floor_apply(const struct policy_floor *floor, struct policy *p);

/* Why this may not be allowed; NULL when it may. clause NULL: with any arguments. */
const char *policy_floor_forbids(const struct policy_floor *floor, unsigned call, const struct policy_clause *clause);

/* Why a call with these arguments may never be allowed, as far as they were looked at; NULL when it may. */
const char *policy_floor_forbids_call(const struct policy_floor *floor, unsigned call, const struct bpf_look *look);

uint64_t policy_floor_digest(void); /* changes when a row does */
