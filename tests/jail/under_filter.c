/* under_filter.c - run a program under a syscall policy and nothing else: under_filter DIR POLICY PROGRAM [ARG]... */
#include "call_number.h"
#include "filter.h"
#include "policy_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static int load(const char *dir, const char *name, struct filter *ret, struct policy *policy, struct err *e)
{
	const char *const           dirs[] = { dir, NULL };
	scoped_policy_bundle bundle = { 0 };

	if (policy_bundle_build(&bundle, name, NULL, policy_file_read, (void *)dirs, e) < 0)
		return -1;
	return policy_parse(policy, &bundle, call_number, e) < 0 ? -1 : filter_compile(policy, ret, e);
}

int main(int argc, char **argv)
{
	static struct policy policy;
	struct filter        filter;
	struct err           e;

	if (argc < 4)
		return fputs("usage: under_filter DIR POLICY PROGRAM|--print|--explain [ARG]...\n", stderr), 2;
	if (load(argv[1], argv[2], &filter, &policy, &e) < 0)
		return fprintf(stderr, "under_filter: %s\n", e.text), 125;
	if (strcmp(argv[3], "--print") == 0)
		return policy_print(&policy, stdout) < 0;
	if (strcmp(argv[3], "--explain") == 0)
		return policy_explain(&policy, stdout) < 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(&filter) < 0)
		return perror("under_filter: install"), 125;
	execv(argv[3], argv + 3);
	return perror(argv[3]), 127;
}
