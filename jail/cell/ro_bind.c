#define _GNU_SOURCE
#include "ro_bind.h"

#include "child_wait.h"
#include "detach.h"
#include "fd.h"
#include "file.h"
#include "mount_plan.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* Owns no file on any file system: the last id before the invalid one. */
#define UNUSED_ID 4294967294u

/* The user namespace of a child, which waits until it is open here. */
static int map_and_open_user_ns(pid_t pid, uint32_t spare_id)
{
	char      path[32], map[48];
	scoped_fd proc = -1;

	snprintf(path, sizeof path, "/proc/%d", pid);
	snprintf(map, sizeof map, "%u %u 1", UNUSED_ID, spare_id);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || file_write_existing(proc, "uid_map", map) < 0 || file_write_existing(proc, "gid_map", map) < 0)
		return -1;
	return openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
}

static int make_idmap_user_ns(uint32_t spare_id)
{
	int   hold[2], fd, saved;
	pid_t pid;

	if (pipe2(hold, O_CLOEXEC) < 0)
		return -1;
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		close(hold[1]);
		_exit((int)read(hold[0], &saved, 1));
	}
	fd    = pid < 0 ? -1 : map_and_open_user_ns(pid, spare_id);
	saved = errno;
	close(hold[0]);
	close(hold[1]);
	if (pid > 0)
		(void)child_wait(pid);
	errno = saved;
	return fd;
}

/* The kernel's own file systems show what the namespaces hide. With FUSE or NFS, only this run waits for fstatfs(). */
static int check_shown_file_kind(int fd, struct err *e)
{
	static const long kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC,   CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
				      DEBUGFS_MAGIC,    TRACEFS_MAGIC, SECURITYFS_MAGIC,   BPF_FS_MAGIC,
				      EFIVARFS_MAGIC,   NSFS_MAGIC };
	struct statfs fs;
	struct statx  st;

	if (file_stat_type(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return err_sys(e, "set-up step open-trees: --ro");
	if (!mount_can_ro_bind(st.stx_mode))
		return err_set(e, ERR_DENIED, "--ro: is neither a directory nor a regular file");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((long)fs.f_type == kinds[i])
			return err_set(e, ERR_DENIED, "--ro: holds what the kernel tells of the host, no files");
	return 0;
}

int ro_bind_open_mount(int fd, uint64_t attrs, uint32_t spare_id, bool *inert, struct err *e)
{
	scoped_fd         tree = check_shown_file_kind(fd, e) < 0 ? -1 : detach_clone_mount(fd, attrs, "--ro", e);
	scoped_fd         ns   = tree < 0 ? -1 : make_idmap_user_ns(spare_id);
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)ns };

	if (tree < 0)
		return -1;
	if (ns < 0)
		return err_sys(e, "set-up step open-trees: --ro: user namespace");
	*inert = mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) == 0;
	/* The file system does not support it, or belongs to another user namespace. */
	if (!*inert && errno != EINVAL && errno != EPERM)
		return err_sys(e, "set-up step open-trees: --ro: id map");
	return fd_take(&tree);
}

