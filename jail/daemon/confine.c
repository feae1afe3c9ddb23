#define _GNU_SOURCE
#include "confine.h"

#include "fd.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <seccomp.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* --- privilege --- */

static int forbid_new_privileges(int folder, struct err *e)
{
	(void)folder;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? err_sys(e, "no-new-privs") : 0;
}

/*
 * The bounding set stays: to empty it takes a capability, and a process that cannot call execve gets nothing from it.
 */
static int drop_capabilities(int folder, struct err *e)
{
	cap_t none = cap_init();
	int   r    = none && cap_set_proc(none) == 0 ? 0 : err_sys(e, "no-caps");

	(void)folder;
	cap_free(none);
	return r;
}

/* Other processes of the same user can then neither read the server's memory nor take its descriptors. */
static int make_undumpable(int folder, struct err *e)
{
	(void)folder;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_sys(e, "not-dumpable") : 0;
}

/* --- Landlock --- */

#define FS_WRITE_FILE  (1ull << 1)
#define FS_READ_FILE   (1ull << 2)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_REG    (1ull << 8)

#define NET_BIND_AND_CONNECT 3ull /* TCP */
#define SCOPE_ALL            3ull /* abstract sockets, signals */

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

/* Every right that this version of Landlock's ABI knows; landlock_attr_size(): the size of its struct. */
static struct ruleset_attr all_landlock_rights(int abi)
{
	static const uint64_t fs[] = { 0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff };

	return (struct ruleset_attr){
		.handled_access_fs  = fs[abi < 5 ? abi : 5],
		.handled_access_net = abi >= 4 ? NET_BIND_AND_CONNECT : 0,
		.scoped             = abi >= 6 ? SCOPE_ALL : 0,
	};
}

static size_t landlock_attr_size(int abi)
{
	return abi >= 6 ? sizeof(struct ruleset_attr) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

static int allow_folder_access(int rules, int folder, uint64_t access)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = access, .parent_fd = folder };

	return landlock_add_rule(rules, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
}

static int restrict_files_by_landlock(int folder, struct err *e)
{
	int                 abi   = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct ruleset_attr attr;
	scoped_fd           proc  = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	scoped_fd           rules = -1;

	if (abi < 1)
		return 0; /* the kernel has no Landlock: confine_server() leaves it out of the names */
	attr  = all_landlock_rights(abi);
	rules = landlock_create_ruleset((const void *)&attr, landlock_attr_size(abi), 0);
	if (rules < 0 || (proc >= 0 && allow_folder_access(rules, proc, FS_READ_FILE) < 0) ||
	    (folder >= 0 && allow_folder_access(rules, folder, FS_WRITE_FILE | FS_MAKE_REG | FS_REMOVE_FILE) < 0) ||
	    landlock_restrict_self(rules, 0) < 0)
		return err_sys(e, "landlock");
	return 0;
}

/* --- system calls --- */

/* clang-format off */
static const int allowed[] = {
	/* clients, monitor and supervisors */
	SCMP_SYS(epoll_create1), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl), SCMP_SYS(accept4),
	SCMP_SYS(recvmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendmsg), SCMP_SYS(sendto), SCMP_SYS(shutdown),
	SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(close),
	/* descriptors that they send, and memory files of the server */
	SCMP_SYS(fcntl), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(readlinkat), SCMP_SYS(dup3),
	SCMP_SYS(memfd_create), SCMP_SYS(ftruncate),
	/* /proc, the log, the audit; Landlock limits the folders */
	SCMP_SYS(openat), SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pread64), SCMP_SYS(pwritev),
	SCMP_SYS(lseek), SCMP_SYS(renameat), SCMP_SYS(unlinkat),
	/* the C library */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex), SCMP_SYS(getrandom),
	SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep), SCMP_SYS(gettimeofday), SCMP_SYS(time), SCMP_SYS(getpid),
	SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(sigaltstack), SCMP_SYS(restart_syscall), SCMP_SYS(wait4), SCMP_SYS(exit),
	SCMP_SYS(exit_group),
};
/* clang-format on */

static int add_seccomp_rules(scmp_filter_ctx filter)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	/* memory, but none that can be executed */
	r = r ? r
	      : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	r = r ? r
	      : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	/* pairs of sockets, for supervisors and for streams of runs */
	return r ? r
		 : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
}

/*
 * A call that is not listed fails with EPERM: a rarely used path in a library should not cost every client its run. No
 * library uses a foreign ABI, so that kills the process.
 */
static int restrict_calls_by_seccomp(int folder, struct err *e)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int             r = filter ? seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) : -ENOMEM;

	(void)folder;
	r = r ? r : add_seccomp_rules(filter);
	r = r ? r : seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	errno = -r;
	return r ? err_sys(e, "seccomp") : 0;
}

/* --- in order --- */

/* clang-format off */
static const struct {
	const char *name;
	int (*apply)(int folder, struct err *e);
} steps[] = {
	{ "no-new-privs", forbid_new_privileges },      /* Landlock and seccomp need it, without privilege */
	{ "no-caps",      drop_capabilities },
	{ "not-dumpable", make_undumpable },            /* after no-caps: a change of credentials can undo it */
	{ "landlock",     restrict_files_by_landlock }, /* opens /proc */
	{ "seccomp",      restrict_calls_by_seccomp },  /* last: it forbids all of the above */
};
/* clang-format on */

int confine_server(int folder, const char *const **names, struct err *e)
{
	static const char *const with[] = { "no-new-privs", "no-caps", "not-dumpable", "landlock", "seccomp", NULL };
	static const char *const less[] = { "no-new-privs", "no-caps", "not-dumpable", "seccomp", NULL };
	bool                     has    = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;

	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i].apply(folder, e) < 0)
			return err_wrap(e, "confinement");
	*names = has ? with : less;
	return 0;
}
