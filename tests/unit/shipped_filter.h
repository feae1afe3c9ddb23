/* shipped_filter.h - a policy of the source tree, parsed and compiled */
#pragma once
#include "call_number.h"
#include "filter.h"
#include "policy.h"
#include "policy_file.h"

#include <linux/audit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* Prints the error, if there is one. */
static inline int shipped_filter(const char *name, struct policy *policy, struct filter *ret)
{
	const char *const    folders[] = { TEST_SOURCE "/profiles", NULL };
	scoped_policy_bundle bundle    = { 0 };
	struct err           e         = { 0 };
	int                  r         = policy_bundle_build(&bundle, name, NULL, policy_file_read, (void *)folders, &e);

	if (r == 0)
		r = policy_parse(policy, &bundle, call_number, &e);
	if (r == 0)
		r = filter_compile(policy, ret, &e);
	printf("# %s: %s\n", name, e.text);
	return r;
}
