#define _GNU_SOURCE
#include "fd.h"
#include "file.h"
#include "id_range.h"
#include "probe_kit.h"
#include "rootless.h"
#include "sub_ids.h"
#include "sys.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define CAP(name) (1ull << CAP_##name)

bool probe_user_namespace(struct probe *p)
{
	bool can_map_self = p->at->uid != 0 || p->at->cap_eff & CAP(SETFCAP);

	if (!sandbox_unshare(p, CLONE_NEWUSER) || !require_procfs(p) || (can_map_self && !sandbox_map_self(p)))
		return false;
	if (!can_map_self && !p->at->is_root) /* host root does not need it: its jails map other ids */
		return report_missing(p, ROOTLESS_ROOT_CAUSE, ROOTLESS_ROOT_FIX);
	/* Ubuntu allows the namespace and then denies every capability in it. */
	return sandbox_unshare(p, CLONE_NEWUTS) &&
	       check_sys_result(p, sethostname("brig", 4), "a capability used inside the new user namespace (sethostname)") &&
	       sandbox_unshare(p, CLONE_NEWUSER) && report_detail(p, "two levels deep");
}

/* A process in a user namespace of its own, which changes to uid 1 and gid 1 once its maps are written. */
struct inner {
	pid_t pid;
	int   go, came; /* pipes: a byte to it means that the maps are written; it sends an errno after each of its two steps */
};

static _Noreturn void inner_child_main(int go, int came)
{
	char byte;
	int  errnum = unshare(CLONE_NEWUSER) < 0 ? errno : 0;

	if (write(came, &errnum, sizeof errnum) != sizeof errnum || read(go, &byte, 1) != 1)
		_exit(1);
	errnum = setresgid(1, 1, 1) < 0 || setresuid(1, 1, 1) < 0 ? errno : 0;
	_exit(write(came, &errnum, sizeof errnum) != sizeof errnum);
}

static bool inner_child_start(struct probe *p, struct inner *ret)
{
	int go[2], came[2];

	if (!check_sys_result(p, pipe2(go, O_CLOEXEC), "pipe") || !check_sys_result(p, pipe2(came, O_CLOEXEC), "pipe"))
		return false;
	ret->pid = fork();
	if (ret->pid == 0) {
		close(go[1]); /* otherwise it would see no end of file when the parent dies */
		inner_child_main(go[0], came[1]);
	}
	ret->go   = go[1];
	ret->came = came[0];
	close(go[0]);
	close(came[1]);
	return check_sys_result(p, ret->pid, "fork");
}

static bool inner_child_step_ok(struct probe *p, const struct inner *in, const char *what)
{
	struct refusal r = { .limit = "user.max_user_namespaces" };

	if (read(in->came, &r.errnum, sizeof r.errnum) != sizeof r.errnum)
		return report_missing(p, "the process in the new user namespace was killed", "see user-namespace: it comes first");
	return r.errnum == 0 || report_refused(p, r, "%s", what);
}

static bool write_id_map(struct probe *p, pid_t pid, const char *name, uint64_t base)
{
	char           path[64], map[48];
	struct refusal r = { .caps = CAP(SETUID) | CAP(SETGID) };

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	snprintf(map, sizeof map, "0 %" PRIu64 " 2", base);
	if (file_write_existing(AT_FDCWD, path, map) == 0)
		return true;
	r.errnum = errno;
	return report_refused(p, r, "write \"%s\" to /proc/PID/%s", map, name);
}

/* Two ids that our own user namespace has: the first of the preset range if possible, otherwise the last two of a map. */
static bool choose_map_base(struct probe *p, uint64_t *ret)
{
	scoped_bytes maps = { 0 };
	struct err   e;
	uint64_t     inside, outside, count, best = 0;
	int          eaten;

	if (file_read(AT_FDCWD, "/proc/self/uid_map", 64 * 1024, &maps, &e) < 0)
		return report_refused(p, (struct refusal){ .errnum = e.errnum }, "read /proc/self/uid_map");
	for (const char *at = maps.data; sscanf(at, "%" SCNu64 " %" SCNu64 " %" SCNu64 "%n", &inside, &outside, &count, &eaten) == 3;
	     at += eaten) {
		if (ID_RANGE_PRESET_BASE >= inside && ID_RANGE_PRESET_BASE - inside + 2 <= count) {
			*ret = ID_RANGE_PRESET_BASE;
			return true;
		}
		if (count >= 2)
			best = inside + count - 2;
	}
	*ret = best;
	return best || report_missing(p, "our own user namespace has a single id: there is no range to give away",
				      "start brig where more ids are mapped (docker: userns-remap; else outside unshare -r)");
}

static bool map_ids_of_host(struct probe *p)
{
	uint64_t     base = 0;
	struct inner in;

	return choose_map_base(p, &base) && inner_child_start(p, &in) && inner_child_step_ok(p, &in, "unshare(CLONE_NEWUSER)") &&
	       write_id_map(p, in.pid, "uid_map", base) && write_id_map(p, in.pid, "gid_map", base) &&
	       check_sys_result(p, write(in.go, "", 1), "pipe") && inner_child_step_ok(p, &in, "setresuid to the second id of the range") &&
	       report_detail(p, "host uids %" PRIu64 " and %" PRIu64 " mapped", base, base + 1);
}

/* Does what brig run does and reports its reason. Without a range, PID 1 and program share one id: the detail has the price. */
static bool map_ids_of_user(struct probe *p)
{
	struct rootless o;
	struct err   e;
	char         advice[160];

	sub_ids_format_advice(advice, sizeof advice); /* before rootless_enter() makes our uid 0 */
	if (rootless_enter(&o, &e) < 0)
		return report_missing(p, e.text, "see user-namespace: it comes first");
	if (o.kind == ROOTLESS_RANGE)
		return report_detail(p, "%u subordinate ids of this user", o.ids.count);
	report_degraded(p, o.why, o.fix ? o.fix : advice);
	return report_detail(p, "a single id, this user's own: a program may renice its PID 1 and uses up the user's own quotas");
}

bool probe_id_range(struct probe *p)
{
	char    self[16] = "";
	ssize_t n        = readlink("/proc/self", self, sizeof self - 1);

	if (!require_procfs(p))
		return false;
	if (n <= 0 || strtol(self, NULL, 10) != getpid()) /* then /proc/PID is another process */
		return report_missing(p, "/proc belongs to another pid namespace than we do", "mount -t proc proc /proc");
	return p->at->is_root || p->at->is_monitor ? map_ids_of_host(p) : map_ids_of_user(p);
}

bool probe_mount_namespace(struct probe *p)
{
	return sandbox_enter(p, CLONE_NEWNS) && mount_or_report(p, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

bool probe_pid_namespace(struct probe *p)
{
	return sandbox_enter(p, CLONE_NEWPID) && sandbox_become_child(p) &&
	       (getpid() == 1 || report_missing(p, "the first process of a new pid namespace is not PID 1", ""));
}

/* Sends a datagram to itself: that the interface is marked UP does not prove that it works. */
static bool check_loopback(struct probe *p, int s)
{
	struct sockaddr_in at  = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          len = sizeof at;
	ssize_t            sent;
	char               byte;

	if (!check_sys_result(p, bind(s, (struct sockaddr *)&at, len), "bind to 127.0.0.1") ||
	    !check_sys_result(p, getsockname(s, (struct sockaddr *)&at, &len), "getsockname"))
		return false;
	/* A new network namespace has no firewall rules: an EPERM comes from a BPF program of the control group. */
	sent = sendto(s, "", 1, 0, (struct sockaddr *)&at, len);
	if (sent < 0 && errno == EPERM)
		return report_missing(p, "send over lo: EPERM (layer: a filter of addresses that our control group has)",
				      p->at->where == WHERE_SERVICE ?
		                             "in the unit: no IPAddressDeny=, or IPAddressAllow=localhost beside it" :
		                             "bpftool cgroup tree names the filter: start brig outside of that group");
	return check_sys_result(p, sent < 0 ? -1 : 0, "send over lo") && check_sys_result(p, recv(s, &byte, 1, MSG_DONTWAIT), "receive over lo");
}

bool probe_net_namespace(struct probe *p)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	scoped_fd    s  = -1;

	if (!sandbox_enter(p, CLONE_NEWNET))
		return false;
	s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return check_sys_result(p, s, "socket(AF_INET)") && check_sys_result(p, ioctl(s, SIOCSIFFLAGS, &lo), "bring up lo") && check_loopback(p, s) &&
	       report_detail(p, "lo is up");
}

bool probe_ipc_namespace(struct probe *p)
{
	return sandbox_enter(p, CLONE_NEWIPC);
}

bool probe_uts_namespace(struct probe *p)
{
	return sandbox_enter(p, CLONE_NEWUTS) && check_sys_result(p, sethostname("brig", 4), "sethostname");
}

bool probe_cgroup_namespace(struct probe *p)
{
	return sandbox_enter(p, CLONE_NEWCGROUP);
}

static pid_t clone_and_reap(uint64_t flags)
{
	struct clone_args args  = { .flags = flags, .exit_signal = SIGCHLD };
	pid_t             child = clone3(&args, sizeof args);

	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, 0);
	return child;
}

/*
 * Tries the clone3() that begins a cell. Seccomp filters of containers answer
 * ENOSYS to clone3, because they cannot read the flags in its struct. brig has
 * no other way to begin a cell.
 */
bool probe_clone3(struct probe *p)
{
	uint64_t       flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	struct refusal r     = { .caps = 0 };

	if (clone_and_reap(flags | CLONE_NEWUSER) > 0)
		return true;
	r.errnum = errno;
	if (p->at->cap_eff & CAP(SYS_ADMIN) && clone_and_reap(flags) > 0)
		return report_detail(p, "works, except for user namespaces"); /* they have a row of their own */
	if (r.errnum == ENOSPC)
		return report_missing(p, "clone3 of a process with namespaces of its own: ENOSPC (layer: limits)",
				      "see the namespaces above: one of them is at its limit");
	if (clone3(NULL, 0) < 0) /* the kernel answers EINVAL */
		r.twin = errno;
	return report_refused(p, r, "clone3 of a process with namespaces of its own");
}

/* Enters several namespaces of another process in one call, as the fork of a zygote enters its cell. */
bool probe_setns_pidfd(struct probe *p)
{
	struct refusal r = { .caps = 0 };
	int            ready[2], both = CLONE_NEWUTS | CLONE_NEWIPC;
	char           byte;
	pid_t          host;
	scoped_fd      pidfd = -1;

	if (!sandbox_enter(p, 0) || !check_sys_result(p, pipe2(ready, O_CLOEXEC), "pipe") || !check_sys_result(p, host = fork(), "fork"))
		return false;
	if (host == 0) {
		if (unshare(CLONE_NEWUSER) == 0)
			prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* otherwise setns() to this process is refused with EPERM */
		if (unshare(both) == 0 && write(ready[1], "", 1) == 1)
			wait_for_end_of_probe();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return report_missing(p, "unshare(CLONE_NEWUTS | CLONE_NEWIPC) was refused", "see uts-namespace and ipc-namespace");
	pidfd = pidfd_open(host, 0);
	if (!check_sys_result(p, pidfd, "pidfd_open"))
		return false;
	if (setns(pidfd, CLONE_NEWUSER | both) == 0 || setns(pidfd, both) == 0)
		return true;
	r.errnum = errno;
	if (setns(-1, both) < 0) /* the kernel answers EBADF */
		r.twin = errno;
	return report_refused(p, r, "setns(pidfd, several namespaces)");
}

/* Forks into another pid namespace, as a zygote does: setns() changes it for the next child, not for the caller. */
bool probe_fork_into_pid_ns(struct probe *p)
{
	struct refusal    r    = { .caps = 0 };
	int               born = -1, status = 0;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_NEWPID, .pidfd = (uintptr_t)&born, .exit_signal = SIGCHLD };
	pid_t             init, child;

	if (!sandbox_enter(p, 0))
		return false;
	init = clone3(&args, sizeof args);
	if (init == 0)
		wait_for_end_of_probe();
	scoped_fd pidfd = born;

	if (init < 0)
		return report_missing(p, "no process with process ids of its own could be started", "see pid-namespace and clone3");
	if (setns(pidfd, CLONE_NEWPID) < 0) {
		r.errnum = errno;
		if (setns(-1, CLONE_NEWPID) < 0) /* the kernel answers EBADF */
			r.twin = errno;
		return report_refused(p, r, "setns(pidfd, CLONE_NEWPID)");
	}
	child = fork();
	if (child == 0)
		_exit(getpid() == 2 ? 0 : 1);
	if (!check_sys_result(p, child, "fork into another's process ids") || !check_sys_result(p, waitpid(child, &status, 0), "wait for it"))
		return false;
	return status == 0 || report_missing(p, "setns worked, and a child has other process ids", "");
}
