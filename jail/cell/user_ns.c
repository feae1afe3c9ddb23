#define _GNU_SOURCE
#include "user_ns.h"

#include "fd.h"
#include "file.h"
#include "privilege.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

bool user_ns_has_one_id(const struct slot *slot)
{
	return slot->init_id == slot->program_id;
}

/* --- inside --- */

/*
 * Limits that the kernel keeps for each user namespace. A process that can make no user namespace gets no capability,
 * and without one it can make no other namespace. On hosts that hide /proc/sys, or show it read-only, only the filter
 * prevents this; the record says so.
 *
 * The kernel counts the inotify instances of a cell also for the owner of the namespace above: for a plain user, who
 * has 128 in all, or for the monitor of a service. A jail must not use up those of a desktop or of other jails.
 */
static int write_user_ns_quotas(void)
{
	static const char *const rows[][2] = {
		{ "/proc/sys/user/max_user_namespaces", "0" },
		{ "/proc/sys/user/max_inotify_instances", "4" },
		{ "/proc/sys/user/max_inotify_watches", "8192" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		/* A kernel may lack the inotify limits. */
		if (file_write_existing(AT_FDCWD, rows[i][0], rows[i][1]) < 0 && (errno != ENOENT || i == 0))
			return -1;
	return 0;
}

/* --- outside --- */

/* The pid is that of an unreaped child: it cannot have become another process's. */
static int open_proc_pid_dir(pid_t pid, struct err *e)
{
	char path[48];
	int  fd;

	snprintf(path, sizeof path, "/proc/%d", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "set-up step user-namespace: %s", path) : fd;
}

static int write_cell_id_maps(pid_t pid, const struct slot *slot, struct err *e)
{
	char      text[96];
	scoped_fd proc = open_proc_pid_dir(pid, e);

	if (proc < 0)
		return -1;
	if (user_ns_has_one_id(slot))
		snprintf(text, sizeof text, "%d %u 1\n", USER_NS_PROGRAM_ID, slot->program_id);
	else
		snprintf(text, sizeof text, "0 %u 1\n%d %u 1\n", slot->init_id, USER_NS_PROGRAM_ID, slot->program_id);
	if (file_write_existing(proc, "uid_map", text) < 0)
		return err_sys(e, "set-up step user-namespace: uid_map");
	if (file_write_existing(proc, "setgroups", "deny") < 0)
		return err_sys(e, "set-up step user-namespace: setgroups");
	return file_write_existing(proc, "gid_map", text) < 0 ? err_sys(e, "set-up step user-namespace: gid_map") : 0;
}

/*
 * The namespace is made with the id of PID 1, which then owns it. The owner may open and enter it without
 * CAP_SYS_PTRACE, which root of a container lacks: this process opens it with that id, and a fork server enters the
 * cell with it (fork_server.h).
 */
static pid_t clone_user_ns_owner(uint32_t id, int go[2], bool quotas, int *ns, struct err *e)
{
	struct err second;
	scoped_fd  proc = -1;
	pid_t      pid  = -1;
	char       byte;

	if (privilege_set_userns_uid(id, e) == 0 && privilege_make_dumpable(e) == 0) {
		pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
		if (pid < 0)
			err_sys(e, "set-up step user-namespace: clone");
	}
	/* The exit status is 0 or an errno; the descriptor that the parent has opened keeps the namespace. */
	if (pid == 0) {
		close(go[1]);
		errno = ECANCELED;
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || read(go[0], &byte, 1) != 1 ||
		    (quotas && write_user_ns_quotas() < 0))
			_exit(errno);
		_exit(0);
	}
	proc = pid < 0 ? -1 : open_proc_pid_dir(pid, e);
	*ns  = proc < 0 ? -1 : openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
	if (proc >= 0 && *ns < 0)
		err_sys(e, "set-up step user-namespace: ns/user");
	if (privilege_restore_root_uid(*ns < 0 ? &second : e) < 0)
		fd_closep(ns);
	return pid;
}

static int reap_user_ns_owner(pid_t pid, struct err *e)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "set-up step user-namespace: waitpid");
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return status == 0 ? 0 : err_sys(e, "set-up step user-namespace: /proc/sys/user");
}

int user_ns_make(const struct slot *slot, bool quotas, struct err *e)
{
	scoped_fd  fd = -1;
	struct err second;
	int        go[2], r = -1;
	pid_t      pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(e, "set-up step user-namespace: pipe");
	pid = clone_user_ns_owner(slot->init_id, go, quotas, &fd, e);
	if (fd >= 0 && write_cell_id_maps(pid, slot, e) == 0 && (r = write(go[1], "", 1) == 1 ? 0 : -1) < 0)
		err_sys(e, "set-up step user-namespace: write");
	close(go[0]);
	close(go[1]); /* end of file ends the child, too */
	if (pid > 0 && reap_user_ns_owner(pid, r == 0 ? e : &second) < 0)
		r = -1;
	return privilege_make_undumpable(r == 0 ? e : &second) < 0 || r < 0 ? -1 : fd_take(&fd);
}
