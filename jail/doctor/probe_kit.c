#define _GNU_SOURCE
#include "probe_kit.h"

#include "child_wait.h"
#include "fd.h"
#include "file.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>

/* clang-format off */
/* Settings that a systemd unit needs for a row, because the seccomp filter of other settings refuses its calls. */
static const struct {
	const char *row, *settings;
} units[] = {
	{ "user-namespace",    "RestrictNamespaces=no ProtectHostname=no" }, /* the row calls sethostname() */
	{ "net-namespace",     "RestrictNamespaces=no RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK" },
	{ "uts-namespace",     "ProtectHostname=no RestrictNamespaces=no" },
	{ "clone3",            "RestrictNamespaces=no" },                    /* a filter cannot read the flags in the struct, and refuses all */
	{ "clone-into-cgroup", "RestrictNamespaces=no" },
	{ "openat2",           "RestrictSUIDSGID=no DynamicUser=no" },       /* likewise; DynamicUser=yes implies RestrictSUIDSGID=yes */
};
/* clang-format on */

static bool printf_like(3, 0) finding_set_refusal(struct probe *p, struct refusal r, const char *fmt, va_list ap)
{
	struct finding *f = &p->finding;
	char            why[160];
	int             n;

	r.config  = r.config ? r.config : p->row->config;
	r.since   = r.since ? r.since : p->row->since;
	for (size_t i = 0; !r.unit && i < ARRAY_LEN(units); i++)
		r.unit = strcmp(units[i].row, p->row->name) == 0 ? units[i].settings : NULL;
	f->result = RESULT_MISSING;
	f->errnum = r.errnum;
	f->by     = refusal_find_refuser(&r, p->at);
	n         = vsnprintf(f->cause, sizeof f->cause, fmt, ap);
	refusal_print_cause(&r, f->by, why, sizeof why);
	if (n >= 0 && (size_t)n < sizeof f->cause)
		snprintf(f->cause + n, sizeof f->cause - (size_t)n, ": %s", why);
	refusal_print_advice(&r, f->by, p->at, f->fix, sizeof f->fix);
	return false;
}

bool check_sys_result(struct probe *p, long r, const char *fmt, ...)
{
	int     saved = errno;
	va_list ap;

	if (r >= 0)
		return true;
	va_start(ap, fmt);
	finding_set_refusal(p, (struct refusal){ .errnum = saved }, fmt, ap);
	va_end(ap);
	return false;
}

bool report_refused(struct probe *p, struct refusal r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	finding_set_refusal(p, r, fmt, ap);
	va_end(ap);
	return false;
}

bool report_missing(struct probe *p, const char *cause, const char *fix)
{
	p->finding.result = RESULT_MISSING;
	snprintf(p->finding.cause, sizeof p->finding.cause, "%s", cause);
	snprintf(p->finding.fix, sizeof p->finding.fix, "%s", fix);
	return false;
}

bool report_degraded(struct probe *p, const char *cause, const char *fix)
{
	report_missing(p, cause, fix);
	p->finding.result = RESULT_DEGRADED;
	return true;
}

bool report_better_fix(struct probe *p, const char *fix)
{
	snprintf(p->finding.fix, sizeof p->finding.fix, "%s", fix);
	return false;
}

bool report_detail(struct probe *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->finding.detail, sizeof p->finding.detail, fmt, ap);
	va_end(ap);
	return true;
}

bool mount_or_report(struct probe *p, const char *what, const char *on, const char *type, unsigned long flags, const char *options)
{
	struct refusal r = { .caps = 0 };

	if (mount(what, on, type, flags, options) == 0)
		return true;
	r.errnum = errno;
	if (mount("brig", "/nowhere-brig-doctor", type, flags, NULL) < 0) /* the kernel looks up the path first: ENOENT */
		r.twin = errno;
	return report_refused(p, r, "mount %s on %s", type ? type : what ? what : "propagation", on);
}

/* clang-format off */
static const struct {
	int         flag;
	const char *name, *limit, *config;
} namespaces[] = {
	{ CLONE_NEWUSER,   "CLONE_NEWUSER",   "user.max_user_namespaces",   "CONFIG_USER_NS" },
	{ CLONE_NEWNS,     "CLONE_NEWNS",     "user.max_mnt_namespaces",    NULL },
	{ CLONE_NEWPID,    "CLONE_NEWPID",    "user.max_pid_namespaces",    "CONFIG_PID_NS" },
	{ CLONE_NEWNET,    "CLONE_NEWNET",    "user.max_net_namespaces",    "CONFIG_NET_NS" },
	{ CLONE_NEWIPC,    "CLONE_NEWIPC",    "user.max_ipc_namespaces",    "CONFIG_IPC_NS" },
	{ CLONE_NEWUTS,    "CLONE_NEWUTS",    "user.max_uts_namespaces",    "CONFIG_UTS_NS" },
	{ CLONE_NEWCGROUP, "CLONE_NEWCGROUP", "user.max_cgroup_namespaces", "CONFIG_CGROUPS" },
};
/* clang-format on */

static bool unshare_namespace(struct probe *p, size_t i)
{
	struct refusal r = { .limit = namespaces[i].limit, .config = namespaces[i].config };

	if (unshare(namespaces[i].flag) == 0)
		return true;
	r.errnum = errno;
	if (unshare(namespaces[i].flag | CLONE_PTRACE) < 0) /* an invalid flag: the kernel answers EINVAL */
		r.twin = errno;
	return report_refused(p, r, "unshare(%s)", namespaces[i].name);
}

bool sandbox_unshare(struct probe *p, int flags)
{
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
		if (flags & namespaces[i].flag && !unshare_namespace(p, i))
			return false;
	return true;
}

bool sandbox_map_self(struct probe *p)
{
	char map[32];

	/* Before Linux 3.19 there is no setgroups file; without /proc all three files are missing. */
	if (file_write_existing(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 && errno != ENOENT)
		return check_sys_result(p, -1, "write /proc/self/setgroups");
	snprintf(map, sizeof map, "0 %u 1", p->at->gid);
	if (!check_sys_result(p, file_write_existing(AT_FDCWD, "/proc/self/gid_map", map), "write /proc/self/gid_map"))
		return false;
	snprintf(map, sizeof map, "0 %u 1", p->at->uid);
	return check_sys_result(p, file_write_existing(AT_FDCWD, "/proc/self/uid_map", map), "write /proc/self/uid_map");
}

bool has_procfs(void)
{
	struct statfs s;

	return statfs("/proc", &s) == 0 && s.f_type == PROC_SUPER_MAGIC;
}

bool require_procfs(struct probe *p)
{
	return has_procfs() ||
	       report_missing(p, "id maps cannot be written: /proc is absent or hidden by another mount", "mount -t proc proc /proc");
}

bool sandbox_enter(struct probe *p, int flags)
{
	bool may_do_without = p->at->cap_eff & 1ull << CAP_SYS_ADMIN;

	if (!has_procfs() && !may_do_without)
		return require_procfs(p);
	if (has_procfs() && unshare(CLONE_NEWUSER) == 0) {
		struct finding kept = p->finding;

		if (!sandbox_map_self(p))
			p->finding = kept; /* the row user-namespace reports it; much can be tried without maps */
	} else if (!may_do_without) {
		return report_missing(p, "cannot be tried without a user namespace", "see user-namespace: it comes first");
	}
	return sandbox_unshare(p, flags);
}

/* Ends as the child has ended, so that a child killed by a seccomp filter is reported as such. */
static _Noreturn void end_as_child_ended(pid_t child)
{
	int status = child_wait(child);

	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

bool sandbox_become_child(struct probe *p)
{
	pid_t child = fork();

	if (child > 0)
		end_as_child_ended(child);
	if (child == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return check_sys_result(p, child, "fork");
}

/* The writing end is held by the probe and by the child that goes on for it (sandbox_become_child()). Helpers close it. */
static int lifeline[2] = { -1, -1 };

bool lifeline_open(struct probe *p)
{
	return check_sys_result(p, pipe2(lifeline, O_CLOEXEC), "pipe");
}

/* Not PR_SET_PDEATHSIG: it has no effect when the parent is dead already, which PID 1 of a new pid namespace cannot find out. */
_Noreturn void wait_for_end_of_probe(void)
{
	char byte;

	close(lifeline[1]);
	while (read(lifeline[0], &byte, 1) < 0 && errno == EINTR)
		;
	_exit(1);
}

bool sandbox_enter_tmpfs(struct probe *p)
{
	static const char *const candidates[] = { "/tmp", "/run", "/var", "/mnt", "/dev", "/proc", "/etc", "/" };

	for (size_t i = 0; i < ARRAY_LEN(candidates); i++)
		if (access(candidates[i], F_OK) == 0)
			return mount_or_report(p, "brig", candidates[i], "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=0755") &&
			       check_sys_result(p, chdir(candidates[i]), "chdir %s", candidates[i]);
	return report_missing(p, "no directory to mount on", "mkdir /tmp");
}
