#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"
#include "file.h"
#include "mountinfo.h"
#include "text.h"
#include "sys.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

/* Lists up to three mounts that cover parts of /proc, as "/proc/sys, /proc/kcore"; returns how many there are. */
static unsigned list_mounts_over_proc(char *buf, size_t len)
{
	scoped_bytes     text = { 0 };
	struct mountinfo m;
	struct err       ignored;
	size_t           at = 0, used = 0;
	unsigned         n  = 0;

	buf[0] = 0;
	if (file_read(AT_FDCWD, "/proc/self/mountinfo", MIB, &text, &ignored) < 0)
		return 0;
	while (mountinfo_next(text.data, text.len, &at, &m)) {
		/* The directory below binfmt_misc is empty: the kernel allows a mount there. */
		if (!begins_with(m.at, "/proc/") || strcmp(m.at, "/proc/sys/fs/binfmt_misc") == 0)
			continue;
		if (n++ < 3 && used < len)
			used += (size_t)snprintf(buf + used, len - used, "%s%s", n > 1 ? ", " : "", m.at);
	}
	return n;
}

/*
 * "VFS: Mount too revealing": in a user namespace the kernel allows a second
 * procfs only to a process that can see all of a first one. It answers EPERM,
 * which has a dozen other causes, so the masks were counted in mountinfo.
 */
static bool report_masked_procfs(struct probe *p, bool is_root, const char *masks, unsigned n)
{
	char cause[256];

	snprintf(cause, sizeof cause, "mount proc: EPERM (%s); %u masked: %s", refuser_text(REFUSER_MASK), n, masks);
	p->finding.by  = REFUSER_MASK;
	p->finding.errnum = EPERM;
	if (!is_root)
		return report_missing(p, cause, where_unmask_advice(p->at->where));
	/* root's own runs mount procfs outside of any user namespace; a service's profiles mount it inside of theirs */
	strncat(cause, "; brig run of root works, brigd does not", sizeof cause - strlen(cause) - 1);
	return report_degraded(p, cause, where_unmask_advice(p->at->where));
}

/* Root of the initial user namespace, which maps all ids to themselves. */
static bool is_root_of_host(const struct probe *p)
{
	unsigned inside = 1, outside = 1, count = 0;
	FILE    *f      = fopen("/proc/self/uid_map", "re");

	if (f && fscanf(f, "%u %u %u", &inside, &outside, &count) != 3)
		count = 0;
	if (f)
		fclose(f);
	return p->at->is_root && inside == 0 && outside == 0 && count == UINT32_MAX;
}

#define PROC_OPTIONS "hidepid=2,subset=pid"

static bool mount_proc(struct probe *p, bool is_root)
{
	char     masks[160];
	unsigned n = list_mounts_over_proc(masks, sizeof masks);

	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, PROC_OPTIONS) == 0)
		return true;
	/* sandbox_enter_tmpfs() has just mounted a tmpfs: so neither a filter nor an LSM nor a missing capability refuses mount() */
	if (errno == EPERM && n)
		return report_masked_procfs(p, is_root, masks, n);
	return mount_or_report(p, "proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, PROC_OPTIONS);
}

static bool sandbox_mkdir(struct probe *p, const char *name)
{
	return check_sys_result(p, mkdir(name, 0755), "mkdir on a tmpfs");
}

bool probe_proc(struct probe *p)
{
	bool is_root;

	if (!has_procfs())
		return report_missing(p, "/proc is absent or hidden by another mount: the kernel gives a jail no second procfs without a "
		                        "first", "mount -t proc proc /proc");
	is_root = is_root_of_host(p);
	if (!sandbox_enter(p, CLONE_NEWNS | CLONE_NEWPID) || !sandbox_become_child(p) || !sandbox_enter_tmpfs(p) ||
	    !sandbox_mkdir(p, "proc") || !mount_proc(p, is_root))
		return false;
	if (p->finding.result == RESULT_DEGRADED)
		return true;
	if (!check_sys_result(p, access("proc/1/status", R_OK), "read the status of PID 1 in the new procfs"))
		return false;
	if (access("proc/sys", F_OK) == 0)
		report_degraded(p, "the new procfs shows /proc/sys in spite of subset=pid", "boot Linux 5.8 or newer");
	return report_detail(p, PROC_OPTIONS);
}

bool probe_tmpfs(struct probe *p)
{
	struct statfs s;

	if (!sandbox_enter(p, CLONE_NEWNS) || !sandbox_enter_tmpfs(p) || !sandbox_mkdir(p, "t") ||
	    !mount_or_report(p, "brig", "t", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,nr_inodes=10000,mode=0755") ||
	    !check_sys_result(p, statfs("t", &s), "statfs"))
		return false;
	if ((uint64_t)s.f_blocks * (uint64_t)s.f_bsize != 64 * MIB || s.f_files != 10000)
		return report_missing(p, "a tmpfs with size=64m,nr_inodes=10000 came out with other limits", "");
	return report_detail(p, "size= and nr_inodes= hold");
}

bool probe_fsmount(struct probe *p)
{
	scoped_fd fs = -1, mnt = -1;

	if (!sandbox_enter(p, CLONE_NEWNS) || !sandbox_enter_tmpfs(p) || !sandbox_mkdir(p, "m"))
		return false;
	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (!check_sys_result(p, fs, "fsopen") || !check_sys_result(p, fsconfig(fs, FSCONFIG_SET_STRING, "size", "1m", 0), "fsconfig") ||
	    !check_sys_result(p, fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "fsconfig(CREATE)"))
		return false;
	mnt = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	return check_sys_result(p, mnt, "fsmount") && check_sys_result(p, move_mount(mnt, "", AT_FDCWD, "m", MOVE_MOUNT_F_EMPTY_PATH), "move_mount");
}

/* -1, with a finding, when there is none. */
static int clone_test_tree(struct probe *p)
{
	int tree;

	if (!sandbox_enter(p, CLONE_NEWNS) || !sandbox_enter_tmpfs(p) || !sandbox_mkdir(p, "from") || !sandbox_mkdir(p, "to") || !sandbox_mkdir(p, "from/inside"))
		return -1;
	tree = open_tree(AT_FDCWD, "from", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	return check_sys_result(p, tree, "open_tree(OPEN_TREE_CLONE)") ? tree : -1;
}

bool probe_open_tree(struct probe *p)
{
	scoped_fd tree = clone_test_tree(p);

	return tree >= 0 &&
	       check_sys_result(p, move_mount(tree, "", AT_FDCWD, "to", MOVE_MOUNT_F_EMPTY_PATH), "move_mount of a cloned tree") &&
	       check_sys_result(p, access("to/inside", F_OK), "look into the cloned tree");
}

bool probe_mount_setattr(struct probe *p)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	scoped_fd         tree = clone_test_tree(p);
	struct statvfs    s;

	if (tree < 0 || !check_sys_result(p, mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof attr), "mount_setattr") ||
	    !check_sys_result(p, fstatvfs(tree, &s), "fstatvfs"))
		return false;
	if (!(s.f_flag & ST_RDONLY) || !(s.f_flag & ST_NOSUID) || mkdirat(tree, "forbidden", 0755) == 0)
		return report_missing(p, "a tree made read-only by mount_setattr can still be written", "");
	return report_detail(p, "a whole tree read-only in one call");
}

bool probe_pivot_root(struct probe *p)
{
	if (!sandbox_enter(p, CLONE_NEWNS) || !mount_or_report(p, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || !sandbox_enter_tmpfs(p) ||
	    !sandbox_mkdir(p, "here") || !check_sys_result(p, pivot_root(".", "."), "pivot_root into a tmpfs") ||
	    !check_sys_result(p, umount2(".", MNT_DETACH), "detach the old root") || !check_sys_result(p, chdir("/"), "chdir /"))
		return false;
	if (access("/here", F_OK) < 0 || access("/usr", F_OK) == 0 || access("/proc", F_OK) == 0)
		return report_missing(p, "after pivot_root the old tree can still be seen", "");
	return report_detail(p, "the old root is detached");
}

/* One call must succeed and two must be refused: so a filter that answers 0 to all does not pass for the kernel. */
bool probe_openat2(struct probe *p)
{
	struct open_how how  = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	scoped_fd       root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fine = -1, up = -1, outside = -1;

	fine = openat2(root, ".", &how, sizeof how);
	if (!check_sys_result(p, fine, "openat2(RESOLVE_BENEATH)"))
		return false;
	up      = openat2(root, "..", &how, sizeof how);
	outside = openat2(root, "/", &how, sizeof how);
	if (up >= 0 || outside >= 0)
		return report_missing(p, "openat2(RESOLVE_BENEATH) let a path escape", "");
	return report_detail(p, "RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS");
}

/* clang-format off */
static const struct node {
	const char *path;
	unsigned    minor;
} nodes[] = {
	{ "/dev/null", 3 }, { "/dev/zero", 5 }, { "/dev/full", 7 }, { "/dev/random", 8 }, { "/dev/urandom", 9 },
};
/* clang-format on */

/* The host's nodes are bind-mounted into jails: a plain file in place of one would be a channel between them. */
static bool check_device_node(struct probe *p, const struct node *n)
{
	char        cause[160], fix[160];
	struct stat st;
	int         r = stat(n->path, &st);

	if (r == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, n->minor))
		return true;
	snprintf(cause, sizeof cause, "%s is %s, not the character device 1:%u", n->path,
	         r < 0                   ? "absent"
	         : S_ISREG(st.st_mode)   ? "a regular file"
	         : S_ISCHR(st.st_mode)   ? "another device"
	                                 : "something else",
	         n->minor);
	snprintf(fix, sizeof fix, "as root: rm -f %s; mknod -m 666 %s c 1 %u", n->path, n->path, n->minor);
	return report_missing(p, cause, fix);
}

static bool bind_device_node(struct probe *p, const struct node *n)
{
	const char *name = strrchr(n->path, '/') + 1;
	scoped_fd   at   = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	struct stat st;

	if (!check_sys_result(p, at, "create a mount point") || !mount_or_report(p, n->path, name, NULL, MS_BIND, NULL) || !check_sys_result(p, stat(name, &st), "stat"))
		return false;
	fd_closep(&at);
	at = open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	return check_sys_result(p, at, "open %s after binding it", n->path);
}

bool probe_device_nodes(struct probe *p)
{
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (!check_device_node(p, &nodes[i]))
			return false;
	if (!sandbox_enter(p, CLONE_NEWNS) || !sandbox_enter_tmpfs(p))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (!bind_device_node(p, &nodes[i]))
			return false;
	return report_detail(p, "null zero full random urandom");
}
