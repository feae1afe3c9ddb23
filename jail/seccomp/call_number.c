#include "call_number.h"

#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Since Linux 5.0 a new call has the same number on every machine. libseccomp
 * 2.5.4 knows the names up to 453 with gaps, which once broke a filter of systemd.
 */
/* clang-format off */
static const struct {
	const char *name;
	int         number;
} newer[] = {
	{ "quotactl_fd",             443 },
	{ "memfd_secret",            447 },
	{ "process_mrelease",        448 },
	{ "futex_waitv",             449 },
	{ "set_mempolicy_home_node", 450 },
	{ "cachestat",               451 },
	{ "fchmodat2",               452 },
	{ "map_shadow_stack",        453 },
	{ "futex_wake",              454 },
	{ "futex_wait",              455 },
	{ "futex_requeue",           456 },
	{ "statmount",               457 },
	{ "listmount",               458 },
	{ "lsm_get_self_attr",       459 },
	{ "lsm_set_self_attr",       460 },
	{ "lsm_list_modules",        461 },
	{ "mseal",                   462 },
	{ "setxattrat",              463 },
	{ "getxattrat",              464 },
	{ "listxattrat",             465 },
	{ "removexattrat",           466 },
	{ "open_tree_attr",          467 },
	{ "file_getattr",            468 },
	{ "file_setattr",            469 },
	{ "listns",                  470 },
};
/* clang-format on */

char *call_name(int number, char *buf, size_t len)
{
	char *name = NULL;

	snprintf(buf, len, "%d", number);
	for (size_t i = 0; i < ARRAY_LEN(newer); i++)
		if (newer[i].number == number)
			snprintf(buf, len, "%s", newer[i].name);
	name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
	if (name)
		snprintf(buf, len, "%s", name);
	free(name);
	return buf;
}

int call_number(const char *name)
{
	int number;

	for (size_t i = 0; i < ARRAY_LEN(newer); i++)
		if (strcmp(newer[i].name, name) == 0)
			return newer[i].number;
	number = seccomp_syscall_resolve_name_arch(SCMP_ARCH_NATIVE, name);
	if (number == __NR_SCMP_ERROR)
		return POLICY_CALL_UNKNOWN;
	return number < 0 ? POLICY_CALL_NOWHERE : number;
}
