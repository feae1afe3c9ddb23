#define _GNU_SOURCE
#include "refusal.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

#define CAP(name) (1ull << CAP_##name)

static bool is_permission_errno(int errnum)
{
	return errnum == EPERM || errnum == EACCES;
}

enum refuser refusal_find_refuser(const struct refusal *r, const struct surroundings *at)
{
	bool filter = at->seccomp == 2;

	if (r->twin && r->twin == r->errnum && (is_permission_errno(r->errnum) || filter))
		return REFUSER_FILTER;
	if (r->errnum == ENOSYS)
		return filter ? REFUSER_FILTER : REFUSER_KERNEL; /* the filters of containers answer ENOSYS for calls that they do not know */
	if ((r->errnum == ENOSPC || r->errnum == EUSERS) && r->limit)
		return REFUSER_LIMIT;
	if (r->errnum == EINVAL || r->errnum == ENODEV || r->errnum == EOPNOTSUPP)
		return REFUSER_KERNEL;
	if (!is_permission_errno(r->errnum))
		return REFUSER_NONE;
	if (r->on_file && r->errnum == EACCES && !at->is_root)
		return REFUSER_OWNER;
	if (r->caps & ~at->cap_eff)
		return REFUSER_CAPS;
	if (at->userns_clone == 0 && !(at->cap_eff & CAP(SYS_ADMIN)))
		return REFUSER_SYSCTL;
	if (at->apparmor_userns == 1 && !(at->cap_eff & CAP(SYS_ADMIN)))
		return REFUSER_APPARMOR;
	if (at->chrooted)
		return REFUSER_CHROOT;
	return filter && !r->twin ? REFUSER_FILTER : REFUSER_LSM;
}

const char *refuser_text(enum refuser by)
{
	static const char *const words[] = {
#define REFUSER(id, text) [REFUSER_##id] = text,
#include "refusal.def"
#undef REFUSER
	};

	return by < ARRAY_LEN(words) ? words[by] : words[REFUSER_NONE];
}

/* clang-format off */
static const struct {
	const char *name;
	const char *filter;   /* how to start brig without the seccomp filter */
	const char *caps;     /* how to give brig capabilities; %s is the list */
	const char *unmask;   /* how to get a complete /proc */
	const char *writable; /* how to make the cgroup tree writable */
} wheres[WHERE_COUNT] = {
	[WHERE_PLAIN] = { "plain",
		"start brig outside the program that installed the filter (Seccomp: 2 in /proc/PID/status of its processes)",
		"start brig with %s: setpriv --ambient-caps, or as root",
		"as root: mkdir -p /run/proc && mount -t proc proc /run/proc (one complete procfs is enough)",
		"mount -o remount,rw /sys/fs/cgroup" },
	[WHERE_SERVICE] = { "a systemd service",
		"in the unit: RestrictNamespaces=no, SystemCallFilter=@system-service @mount unshare setns pivot_root",
		"in the unit: AmbientCapabilities=%s, the same in CapabilityBoundingSet=",
		"in the unit: ProtectKernelTunables=no ProtectKernelLogs=no ProcSubset=all, no InaccessiblePaths= in /proc",
		"in the unit: Delegate=cpu memory pids io, ProtectControlGroups=no" },
	[WHERE_DOCKER] = { "a docker container",
		"docker run --security-opt seccomp=unconfined, or a profile allowing clone, unshare, setns, mount, pivot_root",
		"docker run --cap-add %s",
		"docker run --security-opt systempaths=unconfined",
		"docker run --cgroupns=private --security-opt writable-cgroups=true, or -v /sys/fs/cgroup:/sys/fs/cgroup:rw" },
	[WHERE_PODMAN] = { "a podman container",
		"podman run --security-opt seccomp=unconfined, or a profile allowing clone, unshare, setns, mount, pivot_root",
		"podman run --cap-add %s",
		"podman run --security-opt unmask=ALL",
		"podman run --cgroupns=private --security-opt unmask=/sys/fs/cgroup" },
	[WHERE_KUBERNETES] = { "a kubernetes pod",
		"in the pod: securityContext.seccompProfile.type: Unconfined",
		"in the pod: securityContext.capabilities.add: [%s]",
		"in the pod: hostUsers: false and securityContext.procMount: Unmasked",
		"in the pod: mount /sys/fs/cgroup read-write, or let containerd set cgroup_writable = true" },
	[WHERE_NSPAWN] = { "a systemd-nspawn container",
		"systemd-nspawn --system-call-filter='@mount @keyring unshare setns pivot_root'",
		"systemd-nspawn --capability=%s",
		"as root: mkdir -p /run/proc && mount -t proc proc /run/proc (one complete procfs is enough)",
		"systemd-nspawn --property=Delegate=yes" },
	[WHERE_LXC] = { "an lxc container",
		"lxc config set NAME security.nesting true",
		"in the container's configuration: lxc.cap.keep = %s",
		"lxc config set NAME security.nesting true",
		"in the container's configuration: lxc.mount.auto = cgroup:rw" },
	[WHERE_CONTAINER] = { "a container",
		"start the container without a seccomp filter, or with one that allows clone, unshare, setns, mount, pivot_root, keyctl",
		"start the container with %s",
		"start the container without masked and read-only paths in /proc",
		"start the container with a cgroup namespace of its own and /sys/fs/cgroup read-write" },
	[WHERE_WSL] = { "WSL2", NULL, NULL, NULL, NULL },
};
/* clang-format on */

const char *where_name(enum where where)
{
	return wheres[where].name;
}

const char *where_unmask_advice(enum where where)
{
	return wheres[where].unmask ? wheres[where].unmask : wheres[WHERE_PLAIN].unmask;
}

const char *where_writable_advice(enum where where)
{
	return wheres[where].writable ? wheres[where].writable : wheres[WHERE_PLAIN].writable;
}

static const struct {
	uint64_t    bit;
	const char *name;
} caps[] = {
	{ CAP(SETUID), "CAP_SETUID" },       { CAP(SETGID), "CAP_SETGID" },   { CAP(SYS_ADMIN), "CAP_SYS_ADMIN" },
	{ CAP(NET_ADMIN), "CAP_NET_ADMIN" }, { CAP(SETPCAP), "CAP_SETPCAP" }, { CAP(SETFCAP), "CAP_SETFCAP" },
};

char *refusal_print_cause(const struct refusal *r, enum refuser by, char *buf, size_t len)
{
	const char *name = strerrorname_np(r->errnum);

	if (by == REFUSER_LIMIT)
		snprintf(buf, len, "%s (layer: limits, %s is used up)", name ? name : "?", r->limit);
	else if (by == REFUSER_NONE)
		snprintf(buf, len, "%s (%s)", name ? name : "?", strerror(r->errnum));
	else
		snprintf(buf, len, "%s (%s)", name ? name : "?", refuser_text(by));
	return buf;
}

static void print_kernel_advice(const struct refusal *r, const struct surroundings *at, char *buf, size_t len)
{
	int n = r->since ? snprintf(buf, len, "boot Linux %s or newer", r->since) : snprintf(buf, len, "boot a kernel");

	if (r->config && n > 0 && (size_t)n < len)
		n += snprintf(buf + n, len - (size_t)n, " built with %s=y", r->config);
	if (n > 0 && (size_t)n < len)
		snprintf(buf + n, len - (size_t)n, " (this is %s)", at->kernel);
}

static void print_caps_advice(const struct refusal *r, const struct surroundings *at, char *buf, size_t len)
{
	const char *how = wheres[at->where].caps ? wheres[at->where].caps : wheres[WHERE_PLAIN].caps;
	const char *hole = strstr(how, "%s");
	char        list[96] = "";
	size_t      n        = 0;

	for (size_t i = 0; i < ARRAY_LEN(caps) && n < sizeof list; i++)
		if (r->caps & ~at->cap_eff & caps[i].bit)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? " " : "", caps[i].name);
	snprintf(buf, len, "%.*s%s%s", (int)(hole - how), how, list, hole + 2);
}

/* clang-format off */
/* Not installed in /etc/apparmor.d: a parser older than the rule "userns" would fail on it at every boot. */
#define APPARMOR_FIX "brig doctor --apparmor | sudo tee /etc/apparmor.d/brig-here && sudo apparmor_parser -r /etc/apparmor.d/brig-here; " \
		     "or, for every program: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
/* clang-format on */

static void print_filter_advice(const struct refusal *r, const struct surroundings *at, char *buf, size_t len)
{
	const char *how = wheres[at->where].filter ? wheres[at->where].filter : wheres[WHERE_PLAIN].filter;

	if (at->where == WHERE_SERVICE && r->unit)
		snprintf(buf, len, "in the unit: %s", r->unit);
	else
		snprintf(buf, len, "%s", how);
}

char *refusal_print_advice(const struct refusal *r, enum refuser by, const struct surroundings *at, char *buf, size_t len)
{
	buf[0] = 0;
	switch (by) {
	case REFUSER_KERNEL:
		print_kernel_advice(r, at, buf, len);
		break;
	case REFUSER_LIMIT:
		snprintf(buf, len, "sysctl -w %s=15000", r->limit);
		break;
	case REFUSER_SYSCTL:
		snprintf(buf, len, "sysctl -w kernel.unprivileged_userns_clone=1");
		break;
	case REFUSER_FILTER:
		print_filter_advice(r, at, buf, len);
		break;
	case REFUSER_APPARMOR:
		snprintf(buf, len, "%s", APPARMOR_FIX);
		break;
	case REFUSER_LSM:
		snprintf(buf, len, "let the security module allow it: journalctl -k | grep -i denied names the rule");
		break;
	case REFUSER_CAPS:
		print_caps_advice(r, at, buf, len);
		break;
	case REFUSER_CHROOT:
		snprintf(buf, len, "start brig outside the chroot: the kernel refuses user namespaces in one");
		break;
	case REFUSER_MASK:
		snprintf(buf, len, "%s", where_unmask_advice(at->where));
		break;
	case REFUSER_OWNER: /* the caller, which knows the file, gives the advice */
	case REFUSER_NONE:
		break;
	}
	return buf;
}
