#define _GNU_SOURCE
#include "user_ns.h"

#include "child_wait.h"
#include "clone.h"
#include "fd.h"
#include "file.h"
#include "privilege.h"
#include "raw_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

bool user_ns_has_one_id(const struct slot *slot)
{
	return slot->init_id == slot->program_id;
}

/* --- inside --- */

/* What the owner is given. Its parent, in whose memory it runs, changes nothing of this meanwhile. */
struct owner {
	int  go, go_writing; /* a pipe: a byte, once the ids are mapped */
	bool quotas;
};

/*
 * Limits that the kernel keeps for each user namespace. A process that can make no user namespace gets no capability,
 * and without one it can make no other namespace. On hosts that hide /proc/sys, or show it read-only, only the filter
 * prevents this; the record says so.
 *
 * The kernel counts the inotify instances of a cell also for the owner of the namespace above: for a plain user,
 * whose limit is 128, or for the monitor of a service. A jail must not use up those of a desktop or of other jails.
 *
 * 0 or -errno.
 */
static long write_user_ns_quotas(void)
{
	static const struct {
		const char *path, *text;
		long        len;
	} rows[] = {
		{ "/proc/sys/user/max_user_namespaces", "0", 1 },
		{ "/proc/sys/user/max_inotify_instances", "4", 1 },
		{ "/proc/sys/user/max_inotify_watches", "8192", 4 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		long fd = raw_call(__NR_openat, AT_FDCWD, (long)rows[i].path, O_WRONLY | O_CLOEXEC, 0, 0), r;

		if (fd == -ENOENT && i > 0) /* a kernel may lack the inotify limits */
			continue;
		r = fd < 0 ? fd : raw_call(__NR_write, fd, (long)rows[i].text, rows[i].len, 0, 0);
		if (r != rows[i].len)
			return r < 0 ? r : -EIO;
		raw_call(__NR_close, fd, 0, 0, 0, 0);
	}
	return 0;
}

/* The exit status is 0 or an errno; the descriptor that the parent has opened keeps the namespace. */
static void own_user_ns(void *arg)
{
	const struct owner *o = arg;
	char                byte;
	long                r;

	raw_call(__NR_close, o->go_writing, 0, 0, 0, 0); /* or its own copy would keep end of file from it */
	r = raw_call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (r == 0 && raw_call(__NR_read, o->go, (long)&byte, 1, 0, 0) != 1)
		r = -ECANCELED;
	if (r == 0 && o->quotas)
		r = write_user_ns_quotas();
	for (;;)
		raw_call(__NR_exit_group, -r, 0, 0, 0, 0);
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

static int write_cell_id_maps(int proc, const struct slot *slot, struct err *e)
{
	char text[96];

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
 * cell with it (fork_server.h). It keeps that id until the maps are written: the change back makes the memory, which
 * it shares with the owner, undumpable, and then the owner's files in /proc belong to the host's root.
 */
static pid_t clone_user_ns_owner(const struct slot *slot, const struct owner *o, int *ns, struct err *e)
{
	const struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	pid_t                   pid  = clone_beside(&args, own_user_ns, (void *)o);
	scoped_fd               proc = -1;

	if (pid < 0)
		return err_sys(e, "set-up step user-namespace: clone");
	proc = open_proc_pid_dir(pid, e);
	*ns  = proc < 0 ? -1 : openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
	if (proc >= 0 && *ns < 0)
		err_sys(e, "set-up step user-namespace: ns/user");
	else if (proc >= 0 && write_cell_id_maps(proc, slot, e) < 0)
		fd_closep(ns);
	return pid;
}

static int reap_user_ns_owner(pid_t pid, struct err *e)
{
	int status = child_wait(pid);

	if (status == -1)
		return err_sys(e, "set-up step user-namespace: waitpid");
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return status == 0 ? 0 : err_sys(e, "set-up step user-namespace: /proc/sys/user");
}

/* Closes `go`. */
static int make_as_owner(const struct slot *slot, bool quotas, int go[2], struct err *e)
{
	const struct owner o = { .go = go[0], .go_writing = go[1], .quotas = quotas };
	scoped_fd          fd = -1;
	struct err         second;
	int                r   = -1;
	pid_t              pid = clone_user_ns_owner(slot, &o, &fd, e);

	if (fd >= 0 && (r = write(go[1], "", 1) == 1 ? 0 : -1) < 0)
		err_sys(e, "set-up step user-namespace: write");
	fd_closep(&go[0]);
	fd_closep(&go[1]); /* end of file ends the owner, too */
	if (pid > 0 && reap_user_ns_owner(pid, r == 0 ? e : &second) < 0)
		r = -1;
	return r < 0 ? -1 : fd_take(&fd);
}

int user_ns_make(const struct slot *slot, bool quotas, struct err *e)
{
	scoped_fd  fd = -1;
	struct err second;
	bool       is_back;
	int        go[2];

	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(e, "set-up step user-namespace: pipe");
	if (privilege_set_userns_uid(slot->init_id, e) == 0 && privilege_make_dumpable(e) == 0)
		fd = make_as_owner(slot, quotas, go, e);
	fd_closep(&go[0]);
	fd_closep(&go[1]);
	/* Root again after a failure, too, and no longer traceable. */
	is_back = privilege_restore_root_uid(fd < 0 ? &second : e) == 0;
	is_back = privilege_make_undumpable(fd < 0 || !is_back ? &second : e) == 0 && is_back;
	return is_back ? fd_take(&fd) : -1;
}
