#define _GNU_SOURCE
#include "base_mounts.h"

#include "detach.h"
#include "fd.h"
#include "file.h"
#include "mountinfo.h"
#include "trust_mount.h"
#include "sys.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int base_mounts_fail(const char *what, struct err *e)
{
	return err_sys(e, "set-up step base-mounts: %s", what);
}

/* --- a namespace with nothing but procfs and a place for a tree --- */

/*
 * The kernel lets a cell mount a procfs only if its mount namespace has one that hides no more than the new one
 * (mount_too_revealing()). In containers parts of /proc are covered, but another procfs may be mounted elsewhere: so
 * all of them are kept, up to PROCS_MAX.
 */
enum { PROCS_MAX = 4 };
static const char *const proc_names[PROCS_MAX] = { "proc", "proc-1", "proc-2", "proc-3" };

/* Its size allows exactly its six directories. */
static int make_base_tmpfs(struct err *e)
{
	scoped_fd fs = fsopen("tmpfs", FSOPEN_CLOEXEC), root = -1;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "4096", 0) < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "6", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return base_mounts_fail("tmpfs", e);
	root = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (root < 0 || mkdirat(root, "tree", 0755) < 0)
		return base_mounts_fail("root", e);
	for (size_t i = 0; i < PROCS_MAX; i++)
		if (mkdirat(root, proc_names[i], 0555) < 0)
			return base_mounts_fail("root", e);
	return fd_take(&root);
}

static int clone_mount_tree(const char *path)
{
	return open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
}

static int clone_procfs_mounts(int proc[PROCS_MAX], struct err *e)
{
	scoped_bytes     text = { 0 };
	struct mountinfo m;
	size_t           at = 0, n = 0;

	proc[n] = clone_mount_tree("/proc");
	if (proc[n++] < 0)
		return base_mounts_fail("/proc", e);
	if (file_read(AT_FDCWD, "/proc/self/mountinfo", 4 * MIB, &text, e) < 0)
		return -1;
	while (n < PROCS_MAX && mountinfo_next(text.data, text.len, &at, &m))
		if (strcmp(m.type, "proc") == 0 && strcmp(m.root, "/") == 0 && strcmp(m.at, "/proc") != 0)
			proc[n++] = clone_mount_tree(m.at); /* -1 if this process cannot open it: cells do without */
	return 0;
}

static int attach_procfs_mounts(int root, const int proc[PROCS_MAX], struct err *e)
{
	for (size_t i = 0; i < PROCS_MAX; i++) {
		scoped_fd at = proc[i] < 0 ? -1 : openat(root, proc_names[i], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (proc[i] >= 0 && (at < 0 || move_mount(proc[i], "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0))
			return base_mounts_fail("/proc", e);
	}
	return 0;
}

static int pivot_into_base_tmpfs(const int proc[PROCS_MAX], struct err *e)
{
	scoped_fd root = make_base_tmpfs(e);

	if (root < 0)
		return -1;
	if (move_mount(root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return base_mounts_fail("root", e);
	if (attach_procfs_mounts(root, proc, e) < 0)
		return -1;
	if (fchdir(root) < 0 || pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return base_mounts_fail("pivot_root", e);
	return 0;
}

static int leave_host_mounts(struct err *e)
{
	int proc[PROCS_MAX] = { -1, -1, -1, -1 };
	int r               = clone_procfs_mounts(proc, e) < 0 ? -1 : pivot_into_base_tmpfs(proc, e);

	for (size_t i = 0; i < PROCS_MAX; i++)
		fd_closep(&proc[i]);
	return r;
}

static int open_own_mount_ns(struct err *e)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? base_mounts_fail("/proc/self/ns/mnt", e) : fd;
}

int base_mounts_open(struct base_mounts *ret, bool is_root, struct err *e)
{
	struct base_mounts b = BASE_MOUNTS_NONE;

	b.is_root = is_root;
	b.host_fd = open_own_mount_ns(e);
	if (b.host_fd < 0)
		return -1;
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return base_mounts_fail("unshare", e);
	if (leave_host_mounts(e) < 0)
		return -1;
	b.own_fd = open_own_mount_ns(e);
	if (b.own_fd < 0)
		return -1;
	*ret = b;
	return 0;
}

/* setns() also sets root and working directory to the root of the namespace. */
int base_mounts_enter_host_ns(const struct base_mounts *b, struct err *e)
{
	return setns(b->host_fd, CLONE_NEWNS) < 0 ? base_mounts_fail("setns", e) : 0;
}

int base_mounts_enter_own_ns(const struct base_mounts *b, struct err *e)
{
	return b->own_fd >= 0 && setns(b->own_fd, CLONE_NEWNS) < 0 ? base_mounts_fail("setns", e) : 0;
}

int base_mounts_reopen_path(const struct base_mounts *b, int from, const char *what, struct err *e)
{
	int fd;

	if (!b->is_root)
		return detach_reopen_path(from, what, e);
	fd = fcntl(from, F_DUPFD_CLOEXEC, 3);
	return fd < 0 ? err_sys(e, "set-up step open-trees: %s", what) : fd;
}

/* --- the tree --- */

struct parts {
	struct mount_plan plan;
	int               tree, part[MOUNT_MAX]; /* detached mounts; -1: none */
};

/* The node is checked by its descriptor: /dev/null of the host may have been replaced (CVE-2025-31133). */
static int clone_device_mount(const struct mount_step *m, struct err *e)
{
	char        path[32];
	struct stat st;
	scoped_fd   host = -1;

	snprintf(path, sizeof path, "/%s", m->to);
	host = open(path, O_PATH | O_CLOEXEC);
	if (host < 0 || fstat(host, &st) < 0)
		return base_mounts_fail(path, e);
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(m->major, m->minor))
		return err_set(e, ERR_SETUP, "set-up step base-mounts: %s is not the device %u, %u", path, m->major, m->minor);
	return detach_clone_mount(host, mount_step_attrs(m), path, e);
}

static int make_rootfs_mounts(struct parts *p, const struct base_mounts *b, const struct store_tree *tree, const char *name, struct err *e)
{
	const struct mount_options mount_options = { .trust = b->trust_fd >= 0 };
	scoped_fd                 here   = -1;

	memset(p->part, 0xff, sizeof p->part); /* -1 */
	p->tree = -1;
	if (mount_plan_build(&p->plan, &mount_options, e) < 0 || base_mounts_enter_host_ns(b, e) < 0)
		return -1;
	here    = base_mounts_reopen_path(b, tree->tree_fd, name, e);
	p->tree = here < 0 ? -1 : detach_clone_mount(here, mount_step_attrs(&p->plan.step[0]), name, e);
	if (p->tree < 0)
		return -1;
	for (size_t i = 0; i < p->plan.n; i++) {
		const struct mount_step *m = &p->plan.step[i];

		if (m->kind != MOUNT_DEVICE && m->kind != MOUNT_TRUST)
			continue;
		p->part[i] = m->kind == MOUNT_DEVICE ? clone_device_mount(m, e) : trust_mount_make(b->trust_fd, tree->tree_fd, m, e);
		if (p->part[i] < 0)
			return -1;
	}
	return base_mounts_enter_own_ns(b, e);
}

/* Attaches only inside the tree: no symbolic link is followed. */
static int attach_mount_in_rootfs(int tree, int part, const char *to, struct err *e)
{
	struct open_how how = { .flags   = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
	scoped_fd       at  = openat2(tree, to, &how, sizeof how);

	return at < 0 || move_mount(part, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? base_mounts_fail(to, e) : 0;
}

static int attach_rootfs_mounts(struct base_mounts *b, struct parts *p, struct err *e)
{
	if (b->tree_fd >= 0 && umount2("/tree", MNT_DETACH) < 0)
		return base_mounts_fail("/tree", e);
	fd_closep(&b->tree_fd);
	if (move_mount(p->tree, "", AT_FDCWD, "/tree", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return base_mounts_fail("/tree", e);
	for (size_t i = 0; i < p->plan.n; i++)
		if (p->part[i] >= 0 && attach_mount_in_rootfs(p->tree, p->part[i], p->plan.step[i].to, e) < 0) {
			(void)umount2("/tree", MNT_DETACH); /* the next try would put another one on top */
			return -1;
		}
	b->tree_fd = fd_take(&p->tree);
	return 0;
}

static int replace_rootfs_mount(struct base_mounts *b, const struct store_tree *tree, const char *name, struct err *e)
{
	struct parts p;
	int          r = make_rootfs_mounts(&p, b, tree, name, e);

	if (r == 0)
		r = attach_rootfs_mounts(b, &p, e);
	fd_closep(&p.tree);
	for (size_t i = 0; i < MOUNT_MAX; i++)
		fd_closep(&p.part[i]);
	if (r == 0)
		memcpy(b->digest, tree->digest, sizeof b->digest);
	return r;
}

int base_mounts_clone_rootfs(struct base_mounts *b, const struct store_tree *tree, const char *name, struct err *e)
{
	int fd;

	if ((b->tree_fd < 0 || strcmp(b->digest, tree->digest) != 0) && replace_rootfs_mount(b, tree, name, e) < 0)
		return -1;
	fd = open_tree(b->tree_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);
	return fd < 0 ? base_mounts_fail(name, e) : fd;
}
