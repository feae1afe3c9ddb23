/*
 * refuse.c - run a program without some system calls, as a container's filter would.
 *
 *   refuse namespaces COMMAND...   EPERM for unshare and clone with any CLONE_NEW*, ENOSYS for clone3
 *   refuse NAME,NAME COMMAND...    EPERM for these calls
 *   refuse kill:NAME COMMAND...    SIGSYS for this call
 *   refuse nosys:NAME COMMAND...   ENOSYS, as an old kernel would
 */
#define _GNU_SOURCE
#include "defs.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const int flags[] = { CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP };

static int refuse_namespaces(scmp_filter_ctx filter)
{
	static const int calls[] = { SCMP_SYS(unshare), SCMP_SYS(clone) };

	for (size_t c = 0; c < ARRAY_LEN(calls); c++)
		for (size_t i = 0; i < ARRAY_LEN(flags); i++)
			if (seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), calls[c], 1,
			                     SCMP_A0(SCMP_CMP_MASKED_EQ, (scmp_datum_t)flags[i], (scmp_datum_t)flags[i])) < 0)
				return -1;
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

static int refuse_names(scmp_filter_ctx filter, char *names)
{
	uint32_t action = SCMP_ACT_ERRNO(EPERM);

	if (strncmp(names, "kill:", 5) == 0) {
		action = SCMP_ACT_KILL_PROCESS;
		names += 5;
	} else if (strncmp(names, "nosys:", 6) == 0) {
		action = SCMP_ACT_ERRNO(ENOSYS);
		names += 6;
	}
	for (char *rest, *name = strtok_r(names, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
		if (seccomp_rule_add(filter, action, seccomp_syscall_resolve_name(name), 0) < 0)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int             r;

	if (argc < 3 || !filter)
		return 2;
	r = strcmp(argv[1], "namespaces") == 0 ? refuse_namespaces(filter) : refuse_names(filter, argv[1]);
	if (r < 0 || seccomp_load(filter) < 0) {
		fprintf(stderr, "refuse %s: no filter\n", argv[1]);
		return 2;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
