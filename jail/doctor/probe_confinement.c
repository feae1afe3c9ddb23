#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"
#include "sys.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static bool set_no_new_privs(struct probe *p)
{
	return check_sys_result(p, prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)");
}

bool probe_no_new_privs(struct probe *p)
{
	return set_no_new_privs(p) &&
	       (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 || report_missing(p, "no_new_privs was set and is off", ""));
}

/* clang-format off */
static const struct {
	uint32_t    action;
	const char *name;
} actions[] = {
	{ SECCOMP_RET_KILL_PROCESS, "SECCOMP_RET_KILL_PROCESS" }, /* 4.14: without it a filter kills one thread only */
	{ SECCOMP_RET_ERRNO,        "SECCOMP_RET_ERRNO" },
};
/* clang-format on */

/* getppid answers EXDEV, getpgid kills, everything else is allowed. */
static bool install_seccomp_filter(struct probe *p)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EXDEV),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getpgid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = ARRAY_LEN(code), .filter = code };

	return check_sys_result(p, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program), "seccomp(SECCOMP_SET_MODE_FILTER)");
}

static bool check_seccomp_filter(struct probe *p)
{
	int   status = 0;
	pid_t child;

	if (syscall(SYS_getppid) != -1 || errno != EXDEV)
		return report_missing(p, "a seccomp filter was installed and does nothing", "");
	child = fork();
	if (child == 0) {
		syscall(SYS_getpgid, 0);
		_exit(0);
	}
	if (!check_sys_result(p, child, "fork") || !check_sys_result(p, waitpid(child, &status, 0), "waitpid"))
		return false;
	return (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) ||
	       report_missing(p, "SECCOMP_RET_KILL_PROCESS was installed and does not kill", "");
}

bool probe_seccomp(struct probe *p)
{
	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (!check_sys_result(p, syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &actions[i].action), "%s", actions[i].name))
			return false;
	return set_no_new_privs(p) && install_seccomp_filter(p) && check_seccomp_filter(p) &&
	       report_detail(p, p->at->seccomp == 2 ? "filters, below the one under which brig was started" :
	                                             "errno and kill-process filters");
}

bool probe_landlock(struct probe *p)
{
	struct landlock_ruleset_attr attr = { .handled_access_fs = LANDLOCK_ACCESS_FS_READ_DIR };
	int                          abi  = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	scoped_fd                    rules = -1;

	if (abi < 0 && errno == EOPNOTSUPP)
		return report_missing(p, "landlock_create_ruleset: EOPNOTSUPP (Landlock is built in but not switched on)",
				      "boot with landlock in lsm=, as in: lsm=landlock,lockdown,yama,integrity,apparmor");
	if (!check_sys_result(p, abi, "landlock_create_ruleset"))
		return false;
	rules = landlock_create_ruleset(&attr, sizeof attr, 0);
	if (!check_sys_result(p, rules, "landlock_create_ruleset") || !set_no_new_privs(p) ||
	    !check_sys_result(p, landlock_restrict_self(rules, 0), "landlock_restrict_self"))
		return false;
	scoped_fd leak = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (leak >= 0)
		return report_missing(p, "a Landlock ruleset is in force and forbids nothing", "");
	return report_detail(p, "ABI %d", abi);
}

static bool empty_capability_bounding_set(struct probe *p)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if (!check_sys_result(p, prctl(PR_CAPBSET_DROP, cap, 0, 0, 0), "prctl(PR_CAPBSET_DROP)"))
			return false;
	return true;
}

bool probe_capabilities(struct probe *p)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   none[2] = { { 0 } };
	unsigned long locks = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
	                      SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	return sandbox_enter(p, 0) && check_sys_result(p, prctl(PR_SET_SECUREBITS, locks, 0, 0, 0), "prctl(PR_SET_SECUREBITS)") &&
	       check_sys_result(p, prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "prctl(PR_CAP_AMBIENT_CLEAR_ALL)") &&
	       empty_capability_bounding_set(p) && check_sys_result(p, syscall(SYS_capset, &head, none), "capset") &&
	       (unshare(CLONE_NEWUTS) < 0 || report_missing(p, "capabilities were dropped and still work", "")) &&
	       report_detail(p, "bounding set empty, securebits locked");
}

bool probe_keyring(struct probe *p)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
		return true;
	if (errno == ENOSYS)
		return report_detail(p, "this kernel has no keyrings: there is nothing to inherit");
	return check_sys_result(p, -1, "keyctl(KEYCTL_JOIN_SESSION_KEYRING)");
}
