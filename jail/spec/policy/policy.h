/*
 * policy.h - which system calls a program may make, and the answer when it may not.
 *
 * Plain data of fixed size, one entry per call number: no heap, no pointers,
 * may be copied and compared. policy_parse() starts from the floor
 * (policy_floor.h), then applies the statements of every text in order. A text
 * can widen or narrow the policy, but never allow what the floor forbids. Pure:
 * the numbers of calls come from the caller's function.
 */
#pragma once
#include "bpf.h"
#include "policy_bundle.h"

#include <stdio.h>

#define POLICY_CALLS        512 /* numbers 0..511; x86-64 and arm64 need 471 */
#define POLICY_NEWEST_CALL  470 /* listns, Linux 6.19; newer calls get ENOSYS in a jail */
#define POLICY_CLAUSES      64
#define POLICY_CLAUSE_TESTS 3
#define POLICY_TEST_VALUES  40

/* SKIP: the call does nothing and answers 0, success. */
enum policy_verdict { POLICY_UNSET, POLICY_ALLOW, POLICY_REFUSE, POLICY_SKIP, POLICY_KILL, POLICY_WHEN };

#define POLICY_BY_FLOOR   (-1)
#define POLICY_BY_DEFAULT (-2)

struct policy_call {
	enum policy_verdict verdict;
	int                 errnum; /* for REFUSE, and for WHEN when no clause holds; 0: default_errnum */
	int                 source; /* of the last statement about it: index into source[], POLICY_BY_FLOOR or POLICY_BY_DEFAULT */
	unsigned            line;
	char                name[32];
};

/* Holds when the low 32 bits of an argument, masked, are one of the values. */
struct policy_test {
	unsigned arg;
	uint32_t mask;
	size_t   n;
	uint32_t value[POLICY_TEST_VALUES];
};

/* Allows the call when all tests hold. A call with verdict WHEN has any number of clauses, of which one must hold. */
struct policy_clause {
	unsigned           call;
	size_t             n;
	struct policy_test test[POLICY_CLAUSE_TESTS];
};

struct policy {
	int                  default_errnum;
	struct policy_call   call[POLICY_CALLS];
	size_t               clauses;
	struct policy_clause clause[POLICY_CLAUSES];
	size_t               sources;
	char                 source[POLICY_SOURCES_MAX][80];
};

#define POLICY_CALL_UNKNOWN (-1) /* no such call on any machine, so a misspelt name: an error */
#define POLICY_CALL_NOWHERE (-2) /* only other machines have it: skipped without an error */
typedef int policy_number_fn(const char *name);

must_use int policy_parse(struct policy *ret, const struct policy_bundle *b, policy_number_fn *number, struct err *e);

/* Whether the policy may allow a call with these arguments. An argument that is not in look->seen counts as matching. */
bool policy_may_allow(const struct policy *p, unsigned call, const struct bpf_look *look);

/* A "deny" can remove the last value from a test: then no argument passes it, and the clause allows nothing. */
bool policy_clause_can_hold(const struct policy_clause *c);

/* The errno of a refused call. */
int policy_call_errnum(const struct policy *p, const struct policy_call *call);

/* The effective policy, sorted by call number. The output is a policy file with the same meaning. */
int policy_print(const struct policy *p, FILE *out);
/* The same by source: the floor, then for each text the calls that it decided last. */
int policy_explain(const struct policy *p, FILE *out);
