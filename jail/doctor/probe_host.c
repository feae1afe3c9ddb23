/* probe_host.c - rows for information only: no profile needs them to run */
#define _GNU_SOURCE
#include "probe_kit.h"

#include "surroundings.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

bool probe_kernel(struct probe *p)
{
	return report_detail(p, "Linux %s, %s", p->at->kernel, where_name(p->at->where));
}

/* Adds ", name=1" for a sysctl that only some distributions have; nothing where it does not exist. */
static void append_sysctl(char *to, size_t len, const char *name, int value)
{
	size_t n = strlen(to);

	if (value >= 0)
		snprintf(to + n, len - n, ", %s=%d", name, value);
}

bool probe_security_layers(struct probe *p)
{
	char lsm[60], sysctls[100] = "";

	if (!read_first_line("/sys/kernel/security/lsm", lsm, sizeof lsm))
		snprintf(lsm, sizeof lsm, "unknown");
	append_sysctl(sysctls, sizeof sysctls, "unprivileged_userns_clone", p->at->userns_clone);
	append_sysctl(sysctls, sizeof sysctls, "apparmor_restrict_unprivileged_userns", p->at->apparmor_userns);
	return report_detail(p, "Seccomp: %d, CapEff: %llx, CapBnd: %llx, LSM: %s%s", p->at->seccomp,
			     (unsigned long long)p->at->cap_eff, (unsigned long long)p->at->cap_bnd, lsm, sysctls);
}

/* clang-format off */
static const struct {
	const char *name;
	unsigned    per_jail; /* namespaces that one jail takes */
} limits[] = {
	{ "user", 2 }, { "mnt", 1 }, { "pid", 1 }, { "net", 1 }, { "ipc", 1 }, { "uts", 1 }, { "cgroup", 1 },
};
/* clang-format on */

/* At a limit of 0, the row of that namespace fails; this row reports small limits, which matter only with many jails. */
bool probe_namespace_limits(struct probe *p)
{
	long long      fewest = -1;
	const char    *which  = "";
	struct statvfs fs;
	char        path[64], cause[128], fix[96];

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		long long jails;

		snprintf(path, sizeof path, "/proc/sys/user/max_%s_namespaces", limits[i].name);
		jails = read_number_file(path);
		if (jails >= 0 && (fewest < 0 || jails / limits[i].per_jail < fewest)) {
			fewest = jails / limits[i].per_jail;
			which  = limits[i].name;
		}
	}
	if (fewest < 0)
		return report_detail(p, "unknown: /proc/sys/user cannot be read");
	report_detail(p, "at most %lld jails at once, by user.max_%s_namespaces", fewest, which);
	if (statvfs("/proc/sys/user", &fs) == 0 && fs.f_flag & ST_RDONLY)
		return report_degraded(p, "/proc/sys/user is read-only: a program is kept from making namespaces by the filter alone, and "
		                         "profile strict is refused",
				       "mount -o remount,bind,rw /proc/sys, or start the container with a /proc/sys that can be written to");
	if (fewest == 0 || fewest >= 64)
		return true;
	snprintf(cause, sizeof cause, "user.max_%s_namespaces leaves room for %lld jails at once", which, fewest);
	snprintf(fix, sizeof fix, "sysctl -w user.max_%s_namespaces=15000", which);
	return report_degraded(p, cause, fix);
}

/* A handler behind a pipe runs as root on the host, with input from the jail. RLIMIT_CORE prevents that only at exactly 1. */
bool probe_core_pattern(struct probe *p)
{
	char pattern[96];

	if (!read_first_line("/proc/sys/kernel/core_pattern", pattern, sizeof pattern))
		return report_detail(p, "unknown: /proc/sys/kernel/core_pattern cannot be read");
	return report_detail(p, pattern[0] == '|' ? "a program of the host: %s" : "files named %s", pattern);
}

bool probe_protected_hardlinks(struct probe *p)
{
	long long value = read_number_file("/proc/sys/fs/protected_hardlinks");

	report_detail(p, value < 0 ? "unknown" : "fs.protected_hardlinks is %lld", value);
	return value != 0 ||
	       report_degraded(p, "the sysctl fs.protected_hardlinks is 0: any user may link to any file",
			       "sysctl -w fs.protected_hardlinks=1");
}
