#define _GNU_SOURCE
#include "privilege.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int keep_only_cap_kill(void)
{
	static const cap_value_t kill_only[] = { CAP_KILL };
	cap_t                    have = cap_get_proc(), caps = cap_init();
	cap_flag_value_t         may = CAP_CLEAR;
	int                      r   = -1;

	if (have && caps && cap_get_flag(have, CAP_KILL, CAP_PERMITTED, &may) == 0 &&
	    cap_set_flag(caps, CAP_PERMITTED, 1, kill_only, may) == 0 && cap_set_flag(caps, CAP_EFFECTIVE, 1, kill_only, may) == 0)
		r = cap_set_proc(caps);
	cap_free(caps);
	cap_free(have);
	return r;
}

int privilege_keep_only_cap_kill(struct err *e)
{
	if (keep_only_cap_kill() < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "set-up step drop-privilege");
	return 0;
}

int privilege_raise_effective_caps(struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   set[2];

	if (syscall(SYS_capget, &head, set) < 0)
		return err_sys(e, "capget");
	for (size_t i = 0; i < ARRAY_LEN(set); i++)
		set[i].effective = set[i].permitted;
	return syscall(SYS_capset, &head, set) < 0 ? err_sys(e, "capset") : 0;
}

int privilege_set_userns_uid(uint32_t id, struct err *e)
{
	if (setresuid(id, id, 0) < 0)
		return err_sys(e, "set-up step clone: setresuid");
	setfsuid(0);
	return privilege_raise_effective_caps(e) < 0 ? err_wrap(e, "set-up step clone") : 0;
}

int privilege_restore_root_uid(struct err *e)
{
	return setresuid(0, 0, 0) < 0 ? err_sys(e, "set-up step clone: setresuid") : 0;
}

/* At -1000 a cell could not be killed for its own memory limit (crun#1357). */
static int reset_negative_oom_score(struct err *e)
{
	scoped_fd fd   = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char      sign = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "set-up step forget-caller: oom_score_adj");
	if (read(fd, &sign, 1) != 1 || (sign == '-' && pwrite(fd, "0", 1, 0) != 1))
		return err_sys(e, "set-up step forget-caller: oom_score_adj");
	return 0;
}

void privilege_set_max_oom_score(void)
{
	scoped_fd fd = -1;

	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* otherwise root owns oom_score_adj */
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)!write(fd, "1000", 4);
}

/* Whether the kernel starts a program, as root, for every crash. True if that cannot be found out. */
static bool host_has_crash_handler(void)
{
	scoped_fd fd    = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC);
	char      first = '|';

	return fd < 0 ? errno != ENOENT : read(fd, &first, 1) < 0 || first == '|';
}

/*
 * With a core limit of exactly 1 the kernel starts no crash handler, but with 0
 * it does. If the caller had "ulimit -c 0", the limit must be raised here: the
 * program's set-up step can only lower it.
 */
static int raise_core_limit(struct err *e)
{
	const struct rlimit one = { 1, 1 };

	if (setrlimit(RLIMIT_CORE, &one) == 0 || !host_has_crash_handler())
		return 0;
	return err_sys(e, "set-up step forget-caller: the core limit is 0, which calls the host's crash handler, and cannot be 1");
}

static int set_dumpable(int how, struct err *e)
{
	return prctl(PR_SET_DUMPABLE, how, 0, 0, 0) < 0 ? err_sys(e, "set-up step forget-caller: dumpable") : 0;
}

int privilege_make_dumpable(struct err *e)
{
	return set_dumpable(1, e);
}

int privilege_make_undumpable(struct err *e)
{
	return set_dumpable(0, e); /* no process may trace the set-up (CVE-2026-41163) */
}

/* --- accounts of a service --- */

static const cap_value_t id_caps[]   = { CAP_SETUID, CAP_SETGID };
static const cap_value_t read_caps[] = { CAP_SETUID, CAP_SETGID, CAP_DAC_READ_SEARCH };

static const struct kept {
	const cap_value_t *cap;
	int                n;
} kept_caps[] = {
	[PRIVILEGE_NO_CAPS]   = { NULL, 0 },
	[PRIVILEGE_ID_CAPS]   = { id_caps, ARRAY_LEN(id_caps) },
	[PRIVILEGE_READ_CAPS] = { read_caps, ARRAY_LEN(read_caps) },
};

/* -1 with errno: the capabilities cannot be read. */
static int check_has_both_caps(cap_value_t one, cap_value_t other)
{
	cap_t            have  = cap_get_proc();
	cap_flag_value_t first = CAP_CLEAR, second = CAP_CLEAR;

	if (!have)
		return -1;
	cap_get_flag(have, one, CAP_EFFECTIVE, &first);
	cap_get_flag(have, other, CAP_EFFECTIVE, &second);
	cap_free(have);
	return first == CAP_SET && second == CAP_SET;
}

bool privilege_has_id_caps(void)
{
	return check_has_both_caps(CAP_SETUID, CAP_SETGID) > 0;
}

int privilege_check_is_root(void)
{
	return geteuid() == 0 ? check_has_both_caps(CAP_SYS_ADMIN, CAP_NET_ADMIN) : 0;
}

static int set_kept_caps(enum privilege_kept kept)
{
	const struct kept *k    = &kept_caps[kept];
	cap_t              caps = cap_init();
	int                r    = caps ? 0 : -1;

	for (cap_flag_t set = CAP_EFFECTIVE; r == 0 && k->n && set <= CAP_INHERITABLE; set++)
		r = cap_set_flag(caps, set, k->n, k->cap, CAP_SET);
	if (r == 0)
		r = cap_set_proc(caps);
	cap_free(caps);
	return r;
}

/* Needs CAP_SETPCAP. A process without it keeps its bounding set, which its parent or its unit has limited. */
static int shrink_bounding_set(enum privilege_kept kept)
{
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		bool is_kept = false;

		for (int i = 0; i < kept_caps[kept].n; i++)
			is_kept |= kept_caps[kept].cap[i] == cap;
		if (!is_kept && prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EPERM)
			return -1;
	}
	return 0;
}

int privilege_switch_to_account(unsigned uid, unsigned gid, enum privilege_kept kept, struct err *e)
{
	if (shrink_bounding_set(kept) < 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
	    setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return err_sys(e, "uid %u and gid %u cannot be taken", uid, gid);
	return set_kept_caps(kept) < 0 ? err_sys(e, "capabilities of uid %u", uid) : 0;
}

int privilege_drop_caps(struct err *e)
{
	if (shrink_bounding_set(PRIVILEGE_NO_CAPS) < 0 || set_kept_caps(PRIVILEGE_NO_CAPS) < 0)
		return err_sys(e, "capabilities cannot be left");
	return 0;
}

int privilege_set_no_new_privs(enum privilege_kept kept, struct err *e)
{
	int r = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);

	for (size_t i = 0; r == 0 && kept == PRIVILEGE_ID_CAPS && i < ARRAY_LEN(id_caps); i++)
		r = prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, id_caps[i], 0, 0);
	if (r < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, "capabilities cannot be locked");
	return 0;
}

int privilege_drop_groups(void)
{
	return setgroups(0, NULL);
}

int privilege_set_fs_group(unsigned gid)
{
	gid_t own = getegid();

	if (setgroups(1, &own) < 0)
		return -1;
	setfsgid(gid);
	return (unsigned)setfsgid(gid) == gid ? 0 : -1;
}

/* Version 1 of control groups lets no process with a real-time policy into a group without a share of real time (EINVAL). */
static int leave_real_time_policy(struct err *e)
{
	const struct sched_param zero   = { 0 };
	int                      policy = sched_getscheduler(0);

	if (policy < 0)
		return err_sys(e, "set-up step forget-caller: scheduling policy");
	policy &= ~SCHED_RESET_ON_FORK;
	if ((policy == SCHED_FIFO || policy == SCHED_RR) && sched_setscheduler(0, SCHED_OTHER, &zero) < 0)
		return err_sys(e, "set-up step forget-caller: real-time policy");
	return 0;
}

int privilege_forget_caller(bool on_host, bool *no_groups, struct err *e)
{
	gid_t one;
	int   n;

	if (on_host && privilege_make_undumpable(e) < 0)
		return -1;
	if (setgroups(0, NULL) < 0 && (on_host || errno != EPERM))
		return err_sys(e, "set-up step forget-caller: setgroups");
	n          = getgroups(1, &one); /* more than one: EINVAL */
	*no_groups = n == 0 || (n == 1 && one == getegid());
	return leave_real_time_policy(e) < 0 || raise_core_limit(e) < 0 ? -1 : reset_negative_oom_score(e);
}
