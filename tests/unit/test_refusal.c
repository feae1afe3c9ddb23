#define _GNU_SOURCE
#include "refusal.h"
#include "tap.h"

#include <errno.h>
#include <linux/capability.h>

#define ALL    (~0ull)
#define CAP(c) (1ull << CAP_##c)

/* clang-format off */
static const struct surroundings
	root     = { .is_root = true, .cap_eff = ALL, .userns_clone = -1, .apparmor_userns = -1, .kernel = "5.10.0" },
	user     = { .uid = 1000, .userns_clone = -1, .apparmor_userns = -1 },
	filtered = { .uid = 1000, .seccomp = 2, .userns_clone = -1, .apparmor_userns = -1 },
	docker   = { .is_root = true, .where = WHERE_DOCKER, .seccomp = 2, .cap_eff = CAP(SETUID) | CAP(SETGID), .userns_clone = -1, .apparmor_userns = -1 },
	ubuntu   = { .uid = 1000, .userns_clone = 1, .apparmor_userns = 1 },
	debian10 = { .uid = 1000, .userns_clone = 0, .apparmor_userns = -1 },
	chrooted = { .uid = 1000, .chrooted = true, .userns_clone = -1, .apparmor_userns = -1 },
	monitor  = { .uid = 995, .is_monitor = true, .where = WHERE_SERVICE, .seccomp = 2, .cap_eff = CAP(SETUID) | CAP(SETGID), .userns_clone = -1, .apparmor_userns = -1 },
	service  = { .uid = 1000, .where = WHERE_SERVICE, .userns_clone = -1, .apparmor_userns = -1 };

static const struct {
	const char                *name;
	const struct surroundings *at;
	struct refusal             r;
	enum refuser               by;
	const char                *fix; /* a part of it */
} rows[] = {
	{ "ENOSPC is the limit, and the fix names its sysctl", &root, { .errnum = ENOSPC, .limit = "user.max_user_namespaces" },
	  REFUSER_LIMIT, "sysctl -w user.max_user_namespaces=15000" },
	{ "a twin refused alike is a filter", &docker, { .errnum = EPERM, .twin = EPERM }, REFUSER_FILTER, "--security-opt seccomp=" },
	{ "a twin refused alike is a filter, even where we could not see one", &user, { .errnum = EPERM, .twin = EPERM }, REFUSER_FILTER, "start brig outside" },
	{ "a twin that the kernel answered clears the filter", &filtered, { .errnum = EPERM, .twin = EINVAL }, REFUSER_LSM, "denied" },
	{ "ENOSYS below a filter is the filter's", &filtered, { .errnum = ENOSYS }, REFUSER_FILTER, "" },
	{ "ENOSYS without a filter is an old kernel", &root, { .errnum = ENOSYS, .since = "5.12" }, REFUSER_KERNEL, "boot Linux 5.12 or newer (this is 5.10.0)" },
	{ "EINVAL is a kernel without the option", &root, { .errnum = EINVAL, .config = "CONFIG_USER_NS" }, REFUSER_KERNEL, "built with CONFIG_USER_NS=y" },
	{ "Ubuntu's AppArmor is told with the profile first", &ubuntu, { .errnum = EPERM, .twin = EINVAL }, REFUSER_APPARMOR, "brig doctor --apparmor | sudo tee /etc/apparmor.d/brig-here && sudo apparmor_parser -r" },
	{ "and with the sysctl as well", &ubuntu, { .errnum = EACCES }, REFUSER_APPARMOR, "kernel.apparmor_restrict_unprivileged_userns=0" },
	{ "Debian's old sysctl is named", &debian10, { .errnum = EPERM, .twin = EINVAL }, REFUSER_SYSCTL, "sysctl -w kernel.unprivileged_userns_clone=1" },
	{ "a chroot is told from an LSM", &chrooted, { .errnum = EPERM, .twin = EINVAL }, REFUSER_CHROOT, "outside the chroot" },
	{ "missing capabilities are named", &service, { .errnum = EPERM, .caps = CAP(SETUID) | CAP(SETGID) }, REFUSER_CAPS,
	  "AmbientCapabilities=CAP_SETUID CAP_SETGID" },
	{ "capabilities that are there are not blamed", &docker, { .errnum = EPERM, .caps = CAP(SETUID), .twin = EINVAL }, REFUSER_LSM, "" },
	{ "a file of somebody else is told from an LSM", &user, { .errnum = EACCES, .on_file = true }, REFUSER_OWNER, "" },
	{ "a filter of a unit is told with the setting behind it", &monitor, { .errnum = ENOSYS, .unit = "RestrictSUIDSGID=no" }, REFUSER_FILTER,
	  "in the unit: RestrictSUIDSGID=no" },
	{ "or with all that it needs where that is not known", &monitor, { .errnum = ENOSYS }, REFUSER_FILTER, "SystemCallFilter=@system-service" },
	{ "elsewhere the unit is not mentioned", &docker, { .errnum = ENOSYS, .unit = "RestrictSUIDSGID=no" }, REFUSER_FILTER, "--security-opt seccomp=" },
	{ "an errno that nobody understands is passed on", &user, { .errnum = EIO }, REFUSER_NONE, "" },
};
/* clang-format on */

int main(void)
{
	char text[320];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum refuser by = refusal_find_refuser(&rows[i].r, rows[i].at);

		if (!tap_ok(by == rows[i].by, "%s", rows[i].name))
			printf("#   got: %s\n", refuser_text(by));
		refusal_print_advice(&rows[i].r, by, rows[i].at, text, sizeof text);
		if (!tap_ok(strstr(text, rows[i].fix) != NULL, "the fix fits"))
			printf("#   got: %s\n", text);
	}
	refusal_print_cause(&(struct refusal){ .errnum = EPERM }, REFUSER_FILTER, text, sizeof text);
	tap_is(text, "EPERM (layer: a seccomp filter that brig was started under)", "a cause is an errno by name and a layer in words");
	for (int w = 0; w < WHERE_COUNT; w++)
		tap_ok(where_name(w) && where_unmask_advice(w) && where_writable_advice(w),
		       "every place has its words");
	return tap_done();
}
