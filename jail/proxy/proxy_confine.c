#define _GNU_SOURCE
#include "proxy_confine.h"

#include "sys.h"

#include <seccomp.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* --- files --- */

#define FS_ALL_1     ((1ull << 13) - 1) /* ABI 1 */
#define FS_REFER     (1ull << 13)       /* ABI 2, 5.19 */
#define FS_TRUNCATE  (1ull << 14)       /* ABI 3, 6.2 */
#define FS_IOCTL_DEV (1ull << 15)       /* ABI 5, 6.10 */
#define FS_READ_FILE (1ull << 2)
#define NET_BIND_TCP (1ull << 0) /* ABI 4, 6.7 */
#define SCOPES       (3ull)      /* ABI 6, 6.12: abstract sockets, signals */

struct ruleset_attr {
	uint64_t handled_access_fs, handled_access_net, scoped;
};

/*
 * What c-ares and OpenSSL read, as far as file modes let the user id of brig-proxy. A Landlock rule belongs to an
 * inode: one for resolv.conf alone is lost when a DHCP client renames a new file over it, so /etc is allowed, and the
 * folders to which the usual symbolic links lead. Single files are listed for links to other places.
 */
static const char *const readable[] = {
	"/etc",
	"/etc/resolv.conf",
	"/etc/hosts",
	"/etc/nsswitch.conf",
	"/etc/host.conf",
	"/usr/lib/ssl",
	"/usr/share/ca-certificates",
	"/usr/local/share/ca-certificates",
	"/run/systemd/resolve",
	"/run/resolvconf",
	"/run/NetworkManager",
};

static int allow_read_beneath(int rules, const char *path)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = FS_READ_FILE };
	int                               r;

	attr.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (attr.parent_fd < 0)
		return 0; /* not every host has it */
	r = landlock_add_rule(rules, LANDLOCK_RULE_PATH_BENEATH, &attr, 0);
	close(attr.parent_fd);
	return r;
}

static struct ruleset_attr landlock_attr(int abi, size_t *size)
{
	struct ruleset_attr attr = { .handled_access_fs = FS_ALL_1 };

	attr.handled_access_fs |= abi >= 2 ? FS_REFER : 0;
	attr.handled_access_fs |= abi >= 3 ? FS_TRUNCATE : 0;
	attr.handled_access_fs |= abi >= 5 ? FS_IOCTL_DEV : 0;
	attr.handled_access_net = abi >= 4 ? NET_BIND_TCP : 0;
	attr.scoped             = abi >= 6 ? SCOPES : 0;
	*size                   = abi >= 6 ? sizeof attr : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
	return attr;
}

/* On a kernel without Landlock only the system call filter and the user id protect files. */
static int landlock_files(struct err *e)
{
	int                 abi = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION), rules, r = 0;
	size_t              size;
	struct ruleset_attr attr = landlock_attr(abi, &size);

	if (abi < 1)
		return 0;
	rules = landlock_create_ruleset((const void *)&attr, size, 0);
	if (rules < 0)
		return err_sys(e, "landlock");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(readable); i++)
		r = allow_read_beneath(rules, readable[i]);
	if (r == 0)
		r = landlock_restrict_self(rules, 0);
	if (r < 0)
		(void)err_sys(e, "landlock");
	close(rules);
	return r;
}

/* --- system calls --- */

static const int allowed[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(close),
	SCMP_SYS(lseek),
	SCMP_SYS(fcntl),
	SCMP_SYS(stat),
	SCMP_SYS(fstat),
	SCMP_SYS(lstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(statx),
	SCMP_SYS(access),
	SCMP_SYS(faccessat),
	SCMP_SYS(faccessat2),
	SCMP_SYS(readlink),
	SCMP_SYS(readlinkat),
	SCMP_SYS(getdents64),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(connect),
	SCMP_SYS(accept4),
	SCMP_SYS(shutdown),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(setsockopt),
	SCMP_SYS(getsockopt),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_create1), /* each run has one */
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(pipe2),
	SCMP_SYS(splice),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(brk),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	SCMP_SYS(uname),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(tgkill),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(restart_syscall),
};

/* Calls that an argument allows: memory that is not executable, files that are only read, IPv4 and IPv6 sockets. */
static int allow_calls_by_argument(scmp_filter_ctx filter)
{
	static const int families[] = { AF_INET, AF_INET6 };
	const uint64_t   changes    = O_ACCMODE | O_CREAT | O_TRUNC;
	int r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, changes, O_RDONLY));
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(families); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
				     SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i], 0));
	return r;
}

/* All other system calls fail with EPERM. */
static int install_call_filter(struct err *e)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int             r      = filter ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (r == 0)
		r = allow_calls_by_argument(filter);
	if (r == 0)
		r = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	errno = -r;
	return r < 0 ? err_sys(e, "seccomp") : 0;
}

int proxy_confine(struct err *e)
{
	struct __user_cap_header_struct head         = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   no_rights[2] = { 0 };
	static const struct rlimit      none         = { 0, 0 };
	/* with 0 the kernel starts a crash handler behind a pipe, which reads secrets */
	static const struct rlimit      no_handler   = { 1, 1 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(e, "prctl");
	if (syscall(SYS_capset, &head, no_rights) < 0)
		return err_sys(e, "capset");
	if ((setrlimit(RLIMIT_CORE, &no_handler) < 0 && errno != EPERM) || setrlimit(RLIMIT_NPROC, &none) < 0 ||
	    setrlimit(RLIMIT_MEMLOCK, &none) < 0)
		return err_sys(e, "setrlimit");
	if (landlock_files(e) < 0)
		return -1;
	return install_call_filter(e);
}
