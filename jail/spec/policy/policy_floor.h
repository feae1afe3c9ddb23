/*
 * policy_floor.h - what no policy file and no profile can allow.
 *
 * Rows with reasons. All that a policy may do with a forbidden call is choose
 * another errno or kill its caller. A call with forbidden values can only be
 * allowed with a condition that excludes them.
 */
#pragma once
#include "policy.h"

#define POLICY_FLOOR_ROWS 128

/* The call number of each row on this machine; negative for calls that it lacks. */
struct policy_floor {
	int number[POLICY_FLOOR_ROWS];
};

struct policy_floor policy_floor_init(policy_number_fn *number);

/* Refuses every forbidden call with the errno of its row. */
void policy_floor_apply(const struct policy_floor *floor, struct policy *p);

/* Why the call may not be allowed under this clause; NULL when it may. clause NULL: allowed with any arguments. */
const char *policy_floor_forbids_clause(const struct policy_floor *floor, unsigned call,
					const struct policy_clause *clause);

/* Why a call with these arguments may never be allowed; NULL when it may. Only arguments in look->seen count. */
const char *policy_floor_forbids_call(const struct policy_floor *floor, unsigned call, const struct bpf_look *look);

uint64_t policy_floor_digest(void); /* of calls, errnos, kinds, arguments, masks and values of the rows; part of the key of the filter cache */
