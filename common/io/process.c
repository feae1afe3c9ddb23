#define _GNU_SOURCE
#include "process.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define SPACE_LEAST    (512 * KIB)
#define SPACE_EVERY_MS 500

/* What the child writes to the pipe when a step before its exec fails. */
struct report {
	char step[24];
	int  errnum;
};

static void __attribute__((noreturn)) child_fail(int pipe_fd, const char *step)
{
	struct report r = { .errnum = errno };

	snprintf(r.step, sizeof r.step, "%s", step);
	if (write(pipe_fd, &r, sizeof r) < 0)
		_exit(126);
	_exit(127);
}

/* /proc is still that of the outer pid namespace; its "self" is this process. */
static int map_user_to_root(uid_t uid, gid_t gid)
{
	char map[64];

	if (file_write_existing(AT_FDCWD, "/proc/self/setgroups", "deny") < 0)
		return -1;
	snprintf(map, sizeof map, "0 %u 1\n", uid);
	if (file_write_existing(AT_FDCWD, "/proc/self/uid_map", map) < 0)
		return -1;
	snprintf(map, sizeof map, "0 %u 1\n", gid);
	if (file_write_existing(AT_FDCWD, "/proc/self/gid_map", map) < 0)
		return -1;
	/* None below this one, in which a program would have capabilities again. Containers have a read-only /proc/sys. */
	return file_write_existing(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0") < 0 && errno != EROFS ? -1 : 0;
}

/* Opens the directory again in this mount namespace: dir refers to a mount of the parent's namespace. */
static int reopen_in_own_mounts(int dir)
{
	char        link[32], path[PATH_MAX];
	struct stat was, is;
	ssize_t     n;
	scoped_fd   again = -1;

	snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
	n = readlink(link, path, sizeof path - 1);
	if (n < 0)
		return -1;
	path[n] = 0;
	again   = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (again < 0 || fstat(dir, &was) < 0 || fstat(again, &is) < 0)
		return -1;
	errno = ESTALE;
	return was.st_dev == is.st_dev && was.st_ino == is.st_ino ? fd_take(&again) : -1;
}

/*
 * Makes everything but the place read-only: tar follows a symbolic link that an earlier archive unpacked, wherever it leads.
 * The place becomes a mount of its own: no hard link can lead out of it, and device files and set-id bits in it have no effect.
 */
static int make_rest_read_only(int place, int *ret)
{
	struct mount_attr rest = { .attr_set = MOUNT_ATTR_RDONLY }, own = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV };
	scoped_fd         at = reopen_in_own_mounts(place), tree = -1;

	if (at < 0)
		return -1;
	tree = open_tree(at, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &own, sizeof own) < 0 ||
	    mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &rest, sizeof rest) < 0 ||
	    move_mount(tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -1;
	*ret = fd_take(&tree);
	return 0;
}

/* After pivot_root(".", ".") the old root is mounted on top of the new one, and is unmounted there. */
static int pivot_into_tree(int tree)
{
	return fchdir(tree) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0 ? -1 : 0;
}

/*
 * A jailed program gets no /proc. Others get a new one: the outer /proc does not have the pids of the new namespace. A jailed program
 * still owns all files in the place, but cannot chroot, mount or make devices. exec() gives root nothing back: no_new_privs.
 */
static int confine_to_folder(const struct process *p, const char **step)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   none[2] = { 0 };
	scoped_fd                       tree    = -1;

	*step = "close the host";
	if (make_rest_read_only(p->place, &tree) < 0)
		return -1;
	*step = "enter the root";
	if (!p->jailed)
		return mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
	if (pivot_into_tree(tree) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return syscall(SYS_capset, &head, none) < 0 ? -1 : 0;
}

/*
 * The program is not PID 1 itself: the kernel drops signals that PID 1 has no
 * handler for, so a program that ends its own helpers, or is ended by them
 * (mmdebstrap on a full disk), would wait for ever.
 */
static void __attribute__((noreturn)) run_under_init(const struct process *p, int pipe_fd)
{
	pid_t pid, gone;
	int   status = 0;

	/* Open directories of the host would be a way out for the function that runs here, and for a program that traces PID 1. */
	if ((pipe_fd > 3 && close_range(3, (unsigned)pipe_fd - 1, 0) < 0) || close_range((unsigned)pipe_fd + 1, ~0u, 0) < 0)
		child_fail(pipe_fd, "close descriptors");
	pid = fork();
	if (pid < 0)
		child_fail(pipe_fd, "fork");
	if (pid == 0 && p->run) {
		close(pipe_fd);
		_exit(p->run(p->context));
	}
	if (pid == 0) {
		environ = (char **)p->env; /* whose PATH execvp() reads */
		execvp(p->argv[0], (char *const *)p->argv);
		child_fail(pipe_fd, "exec");
	}
	close(pipe_fd);
	do
		gone = waitpid(-1, &status, 0);
	while (gone != pid && (gone > 0 || errno == EINTR));
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void __attribute__((noreturn)) run_child(const struct process *p, uid_t uid, gid_t gid, int pipe_fd)
{
	const char *step;
	sigset_t    none;

	sigemptyset(&none);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		child_fail(pipe_fd, "prepare");
	if (uid != 0 && map_user_to_root(uid, gid) < 0)
		child_fail(pipe_fd, "map the user");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		child_fail(pipe_fd, "make mounts private");
	if (confine_to_folder(p, &step) < 0)
		child_fail(pipe_fd, step);
	if (dup2(p->in, 0) < 0 || dup2(p->out, 1) < 0 || dup2(p->out, 2) < 0)
		child_fail(pipe_fd, "set streams");
	run_under_init(p, pipe_fd);
}

/* Returns in the parent only: the child becomes PID 1 of new namespaces, and starts the program. */
static pid_t start_init(const struct process *p, int *pidfd, int pipe_fd)
{
	uid_t             uid  = geteuid();
	gid_t             gid  = getegid();
	struct clone_args args = {
		.flags       = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC,
		.pidfd       = (uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid;

	args.flags |= p->network ? 0 : CLONE_NEWNET;
	args.flags |= uid == 0 ? 0 : CLONE_NEWUSER;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		run_child(p, uid, gid, pipe_fd);
	return pid;
}

int take_stop_signal(int stop, struct err *e)
{
	struct signalfd_siginfo info;

	if (stop < 0 || read(stop, &info, sizeof info) != sizeof info)
		return 0;
	err_set(e, ERR_LIMIT, "interrupted by SIG%s", sigabbrev_np((int)info.ssi_signo));
	e->errnum = ECANCELED;
	return -1;
}

/* Some programs wait for ever on a full disk (apt does), so the parent looks. */
static int check_free_space(int dir, struct err *e)
{
	struct statvfs fs;
	uint64_t       left;

	if (fstatvfs(dir, &fs) < 0)
		return 0;
	left = (geteuid() == 0 ? fs.f_bfree : fs.f_bavail) * fs.f_frsize;
	errno = ENOSPC;
	return left < SPACE_LEAST ? err_sys(e, "less than %llu KiB are free", SPACE_LEAST / KIB) : 0;
}

/* Waits for the end of PID 1 of the namespace, and kills it on a signal or a full disk: all other processes die with it. */
static int wait_for_init(const struct process *p, int pidfd, struct err *e)
{
	struct pollfd on[] = { { .fd = pidfd, .events = POLLIN }, { .fd = p->stop, .events = POLLIN } };
	int           bad  = 0;

	for (;;) {
		if (poll(on, ARRAY_LEN(on), bad ? -1 : SPACE_EVERY_MS) < 0 && errno != EINTR) {
			err_sys(e, "wait for %s", p->argv[0]);
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
			return -1;
		}
		if (on[0].revents & POLLIN) /* Ctrl-C reaches the program as well, which may end first */
			return bad ? bad : take_stop_signal(p->stop, e);
		if (!bad && ((bad = take_stop_signal(p->stop, e)) < 0 || (bad = check_free_space(p->place, e)) < 0)) {
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
			on[1].fd = -1;
		}
	}
}

static int check_exit_status(const struct process *p, int status, int report_fd, struct err *e)
{
	/* NULL: an exit status, 255 among them, which is no signal's. */
	const char   *signal = sigabbrev_np(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128);
	struct report r;

	if (read(report_fd, &r, sizeof r) == sizeof r) {
		errno = r.errnum;
		return err_sys(e, "%s: %.*s", p->argv[0], (int)sizeof r.step, r.step);
	}
	if (signal)
		return err_set(e, ERR_SETUP, "%s: killed by SIG%s", p->argv[0], signal);
	if (WEXITSTATUS(status) != 0)
		return err_set(e, ERR_SETUP, "%s: exit status %d", p->argv[0], WEXITSTATUS(status));
	return 0;
}

int process_run(const struct process *p, struct err *e)
{
	int       ends[2], status = 0, stopped;
	scoped_fd pidfd = -1;
	pid_t     pid;

	if (take_stop_signal(p->stop, e) < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	scoped_fd reading = ends[0], writing = ends[1];

	pid = start_init(p, &pidfd, writing);
	if (pid < 0)
		return err_sys(e, "%s: new namespaces%s", p->argv[0], geteuid() ? " (not root, so they need user namespaces)" : "");
	fd_closep(&writing);
	stopped = wait_for_init(p, pidfd, e);
	if (waitpid(pid, &status, 0) < 0)
		return err_sys(e, "wait for %s", p->argv[0]);
	return stopped < 0 ? -1 : check_exit_status(p, status, reading, e);
}
