#include "policy_floor.h"

#include <errno.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/*
 * Foreign ABIs (i386, x32) have no rows here: the filter kills their callers,
 * and no policy text can name them.
 */
/* clang-format off */
static const struct {
	const char *call;
	int         errnum; /* ENOSYS where libraries have a fallback, EPERM where they have none */
	const char *reason;
} calls[] = {
	{ "unshare",           EPERM,  "new namespaces give access to most holes of the kernel" },
	{ "setns",             EPERM,  "it enters other namespaces" },
	{ "clone3",            ENOSYS, "its flags are in memory, where a filter cannot see CLONE_NEWUSER; clone is used instead" },
	{ "mount",             EPERM,  "it changes the file tree" },
	{ "umount2",           EPERM,  "it uncovers what a mount hides" },
	{ "umount",            EPERM,  "it uncovers what a mount hides" },
	{ "pivot_root",        EPERM,  "it changes the root" },
	{ "chroot",            EPERM,  "it changes the root; with an open directory it is a way out" },
	{ "fsopen",            EPERM,  "it mounts" },
	{ "fsconfig",          EPERM,  "it mounts; CVE-2022-0185 was here" },
	{ "fsmount",           EPERM,  "it mounts" },
	{ "fspick",            EPERM,  "it changes mounts" },
	{ "open_tree",         EPERM,  "it copies mounts" },
	{ "open_tree_attr",    EPERM,  "it copies mounts" },
	{ "move_mount",        EPERM,  "it moves mounts" },
	{ "mount_setattr",     EPERM,  "it makes mounts writable" },
	{ "statmount",         ENOSYS, "it shows mounts, hidden ones too" },
	{ "listmount",         ENOSYS, "it shows mounts, hidden ones too" },
	{ "listns",            ENOSYS, "it shows namespaces" },
	{ "ptrace",            EPERM,  "it controls other processes" },
	{ "lsm_set_self_attr", ENOSYS, "it changes what a security module knows a program by" },
	{ "process_vm_readv",  EPERM,  "it reads other processes' memory" },
	{ "process_vm_writev", EPERM,  "it writes other processes' memory" },
	{ "process_madvise",   ENOSYS, "it handles other processes' memory" },
	{ "process_mrelease",  ENOSYS, "it handles other processes' memory" },
	{ "kcmp",              EPERM,  "it shows addresses of the kernel" },
	{ "pidfd_getfd",       EPERM,  "it takes other processes' descriptors" },
	{ "move_pages",        EPERM,  "it moves memory of other processes" },
	{ "migrate_pages",     EPERM,  "it moves memory of other processes" },
	{ "bpf",               EPERM,  "it loads programs into the kernel, whose verifier has often been wrong" },
	{ "perf_event_open",   EPERM,  "it watches the machine, and has had many holes" },
	{ "userfaultfd",       ENOSYS, "it stops the kernel in the middle of an access, which wins races" },
	{ "io_uring_setup",    ENOSYS, "its requests bypass every filter" },
	{ "io_uring_enter",    ENOSYS, "its requests bypass every filter" },
	{ "io_uring_register", ENOSYS, "its requests bypass every filter" },
	{ "seccomp",           EPERM,  "a listener could answer its children's calls" },
	{ "keyctl",            EPERM,  "keyrings outlive the run and belong to the host's uid" },
	{ "add_key",           EPERM,  "keyrings outlive the run" },
	{ "request_key",       EPERM,  "it starts a helper on the host" },
	{ "open_by_handle_at", EPERM,  "it opens files without a path: the way out of early containers" },
	{ "name_to_handle_at", EPERM,  "it makes the handles for open_by_handle_at" },
	{ "fanotify_init",     EPERM,  "it watches, and can hold up, other jails' files" },
	{ "fanotify_mark",     EPERM,  "it watches, and can hold up, other jails' files" },
	{ "memfd_secret",      ENOSYS, "it hides memory from limits and dumps" },
	{ "lookup_dcookie",    EPERM,  "it shows the host's paths" },
	{ "quotactl",          EPERM,  "administration of the host" },
	{ "quotactl_fd",       EPERM,  "administration of the host" },
	{ "acct",              EPERM,  "administration of the host" },
	{ "swapon",            EPERM,  "administration of the host" },
	{ "swapoff",           EPERM,  "administration of the host" },
	{ "reboot",            EPERM,  "administration of the host" },
	{ "syslog",            EPERM,  "the kernel's log holds the host's secrets" },
	{ "vhangup",           EPERM,  "administration of the host" },
	{ "sethostname",       EPERM,  "administration of the host" },
	{ "setdomainname",     EPERM,  "administration of the host" },
	{ "settimeofday",      EPERM,  "the clock is the host's" },
	{ "clock_settime",     EPERM,  "the clock is the host's" },
	{ "clock_adjtime",     EPERM,  "the clock is the host's" },
	{ "adjtimex",          EPERM,  "the clock is the host's" },
	{ "stime",             EPERM,  "the clock is the host's" },
	{ "init_module",       EPERM,  "it loads code into the kernel" },
	{ "finit_module",      EPERM,  "it loads code into the kernel" },
	{ "delete_module",     EPERM,  "it changes or shows modules of the kernel" },
	{ "create_module",     EPERM,  "it loads code into the kernel" },
	{ "query_module",      EPERM,  "it changes or shows modules of the kernel" },
	{ "get_kernel_syms",   EPERM,  "it shows addresses of the kernel" },
	{ "kexec_load",        EPERM,  "it boots another kernel" },
	{ "kexec_file_load",   EPERM,  "it boots another kernel" },
	{ "iopl",              EPERM,  "it gives access to the hardware" },
	{ "ioperm",            EPERM,  "it gives access to the hardware" },
	{ "modify_ldt",        EPERM,  "16-bit segments, which had many holes and no use" },
	{ "nfsservctl",        EPERM,  "administration of the host" },
	{ "uselib",            EPERM,  "unused since a.out" },
	{ "_sysctl",           EPERM,  "administration of the host" },
	{ "sysfs",             EPERM,  "unused; the host's file systems" },
	{ "ustat",             EPERM,  "unused; the host's devices" },
	{ "vserver",           EPERM,  "never existed here" },
};

#define ALL_BITS UINT32_MAX
#define CLONE_FLAG(flag) { "clone", NEVER, 0, flag, 1, { flag }, "a new namespace gives access to most holes of the kernel" }

static const struct floor_value {
	const char *call;
	enum { NEVER, NEVER_BUT_UNIX,
		ONLY } kind; /* NEVER_BUT_UNIX: where argument 0 is AF_UNIX the row does not apply */
	unsigned    arg;
	uint32_t    mask; /* the bits that are compared */
	size_t      n;
	uint32_t    value[3];
	const char *reason;
} values[] = {
	CLONE_FLAG(CLONE_NEWNS),
	CLONE_FLAG(CLONE_NEWCGROUP),
	CLONE_FLAG(CLONE_NEWUTS),
	CLONE_FLAG(CLONE_NEWIPC),
	CLONE_FLAG(CLONE_NEWUSER),
	CLONE_FLAG(CLONE_NEWPID),
	CLONE_FLAG(CLONE_NEWNET),
	{ "ioctl",       NEVER, 1, ALL_BITS, 1, { TIOCSTI },   "it types into the terminal from which the jail was started" },
	{ "ioctl",       NEVER, 1, ALL_BITS, 1, { TIOCLINUX }, "it pastes into the console" },
	{ "ioctl",       NEVER, 1, ALL_BITS, 1, { TIOCSETD },  "it loads line disciplines, a rich source of holes" },
	{ "ioctl",       NEVER, 1, ALL_BITS, 1, { TIOCCONS },  "it takes over the console" },
	{ "prctl",       NEVER, 0, ALL_BITS, 1, { PR_SET_SECCOMP },  "a program may not change its filter" },
	{ "prctl",       NEVER, 0, ALL_BITS, 1, { PR_SET_SECUREBITS }, "a program may not change the rules of its capabilities" },
	{ "prctl",       NEVER, 0, ALL_BITS, 1, { PR_CAP_AMBIENT }, "no capability survives exec" },
	{ "prctl",       NEVER, 0, ALL_BITS, 1, { PR_SET_PTRACER }, "no process may trace another" },
	{ "prctl",       NEVER, 0, ALL_BITS, 1, { PR_SET_MM }, "it forges what /proc says about a process" },
	{ "prctl",       NEVER, 0, ALL_BITS, 1, { 59 }, "PR_SET_SYSCALL_USER_DISPATCH: calls with another meaning" },
	{ "personality", ONLY,  0, ALL_BITS, 1, { 0xffffffff }, "it switches off protections of memory; only queries are allowed" },
	/* Netlink is forbidden, too: if_nameindex() fails, but a family with some 300 ways into the kernel stays closed. */
	{ "socket",      ONLY,  0, ALL_BITS, 3, { AF_UNIX, AF_INET, AF_INET6 }, "other families are rarely used, have had many holes, and load kernel modules" },
	{ "socket",      ONLY,  1, 0xf, 3, { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET }, "raw sockets forge packets" },
	{ "socket",      NEVER_BUT_UNIX, 1, 0xf, 1, { SOCK_SEQPACKET }, "outside of AF_UNIX it is SCTP, also with protocol 0" },
	{ "socket",      ONLY,  2, ALL_BITS, 3, { 0, IPPROTO_TCP, IPPROTO_UDP }, "MPTCP, SCTP and ICMP bypass network rules" },
	{ "socketpair",  ONLY,  0, ALL_BITS, 1, { AF_UNIX }, "other families have holes and no use" },
	{ "mknod",       NEVER, 1, S_IFMT, 1, { S_IFCHR }, "a device node reaches the host's drivers" },
	{ "mknod",       NEVER, 1, S_IFMT, 1, { S_IFBLK }, "a device node reaches the host's disks" },
	{ "mknodat",     NEVER, 2, S_IFMT, 1, { S_IFCHR }, "a device node reaches the host's drivers" },
	{ "mknodat",     NEVER, 2, S_IFMT, 1, { S_IFBLK }, "a device node reaches the host's disks" },
};
/* clang-format on */

_Static_assert(ARRAY_LEN(calls) + ARRAY_LEN(values) <= POLICY_FLOOR_ROWS, "the floor outgrew its array");

struct policy_floor policy_floor_init(policy_number_fn *number)
{
	struct policy_floor floor;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		floor.number[i] = number(calls[i].call);
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		floor.number[ARRAY_LEN(calls) + i] = number(values[i].call);
	return floor;
}

void policy_floor_apply(const struct policy_floor *floor, struct policy *p)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		int number = floor->number[i];

		if (number < 0 || number >= POLICY_CALLS)
			continue;
		p->call[number] = (struct policy_call){ POLICY_REFUSE, calls[i].errnum, POLICY_BY_FLOOR, 0, "" };
		snprintf(p->call[number].name, sizeof p->call[number].name, "%s", calls[i].call);
	}
}

/* Whether an argument can pass the test and have `value` in the bits of `mask`: the bits that both masks share must agree. */
static bool test_admits_value(const struct policy_test *t, uint32_t mask, uint32_t value)
{
	for (size_t i = 0; i < t->n; i++)
		if (((t->value[i] ^ value) & t->mask & mask) == 0)
			return true;
	return false;
}

static bool row_has_value(const struct floor_value *row, uint32_t value)
{
	for (size_t i = 0; i < row->n; i++)
		if (row->value[i] == value)
			return true;
	return false;
}

static bool test_stays_within_row(const struct policy_test *t, const struct floor_value *row)
{
	if ((t->mask & row->mask) != row->mask)
		return false;
	for (size_t i = 0; i < t->n; i++)
		if (!row_has_value(row, t->value[i] & row->mask))
			return false;
	return true;
}

static bool clause_obeys_row(const struct policy_clause *c, const struct floor_value *row)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct policy_test *t = &c->test[i];

		if (row->kind == NEVER_BUT_UNIX && t->arg == 0 && t->mask == ALL_BITS && t->n == 1 && t->value[0] == AF_UNIX)
			return true;
		if (t->arg == row->arg && (row->kind == ONLY ? test_stays_within_row(t, row) :
					   !test_admits_value(t, row->mask, row->value[0])))
			return true;
	}
	return false;
}

static bool row_forbids_call(const struct floor_value *row, const struct bpf_look *look)
{
	if (row->kind == NEVER_BUT_UNIX && (!(look->seen & 1u) || look->arg[0] == AF_UNIX))
		return false;
	return look->seen & 1u << row->arg &&
	       row_has_value(row, look->arg[row->arg] & row->mask) == (row->kind != ONLY);
}

/* look NULL: of a statement, with its clause; else of a call that was made. */
static const char *find_forbidding_row_reason(const struct policy_floor *floor, unsigned call,
					      const struct policy_clause *clause, const struct bpf_look *look)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (floor->number[i] == (int)call)
			return calls[i].reason;
	for (size_t i = 0; i < ARRAY_LEN(values); i++)
		if (floor->number[ARRAY_LEN(calls) + i] == (int)call &&
		    (look ? row_forbids_call(&values[i], look) : !clause || !clause_obeys_row(clause, &values[i])))
			return values[i].reason;
	return NULL;
}

const char *policy_floor_forbids_clause(const struct policy_floor *floor, unsigned call,
					const struct policy_clause *clause)
{
	return find_forbidding_row_reason(floor, call, clause, NULL);
}

const char *policy_floor_forbids_call(const struct policy_floor *floor, unsigned call, const struct bpf_look *look)
{
	return find_forbidding_row_reason(floor, call, NULL, look);
}

static uint64_t fnv1a_add(uint64_t digest, const void *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		digest = (digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
	return digest;
}

uint64_t policy_floor_digest(void)
{
	uint64_t digest = 0xcbf29ce484222325u;

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		digest = fnv1a_add(digest, calls[i].call, strlen(calls[i].call));
		digest = fnv1a_add(digest, &calls[i].errnum, sizeof calls[i].errnum);
	}
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		digest = fnv1a_add(digest, values[i].call, strlen(values[i].call));
		digest = fnv1a_add(digest, &values[i].kind, sizeof values[i].kind);
		digest = fnv1a_add(digest, &values[i].arg, sizeof values[i].arg);
		digest = fnv1a_add(digest, &values[i].mask, sizeof values[i].mask);
		digest = fnv1a_add(digest, values[i].value, sizeof values[i].value);
	}
	return digest;
}
