#define _GNU_SOURCE
#include "profile_userns.h"

#include "fd.h"
#include "file.h"
#include "packet.h"
#include "privilege.h"
#include "supervisor_protocol.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* --- the supervisor's side of the fork --- */

/* Waits for a byte from the monitor, which writes the id maps first. */
static _Noreturn void exec_supervisor(int sock, int go, bool is_new)
{
	char *const argv[] = { (char *)"brig-supervisor", NULL }, *const none[] = { NULL };
	char byte;
	int  file;

	signal(SIGCHLD, SIG_DFL);
	if (is_new && (read(go, &byte, 1) != 1 || privilege_drop_groups() < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0))
		_exit(EXIT_FAILURE);
	if (is_new && mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0) /* what is unmounted outside is unmounted here as well */
		_exit(EXIT_FAILURE);
	file = fcntl(MONITOR_SUPERVISOR_FD, F_DUPFD_CLOEXEC, MONITOR_FDS_END);
	if (file >= 0 && dup2(sock, SUPERVISOR_FD) == SUPERVISOR_FD &&
	    close_range(SUPERVISOR_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
		execveat(file, "", argv, none, AT_EMPTY_PATH);
	_exit(EXIT_FAILURE);
}

/* --- the maps --- */

/* "0 ROOT 1", then the cells' ids as they are on the host. */
static void format_id_map(char *text, size_t len, uint32_t root, const struct id_range *cells)
{
	snprintf(text, len, "0 %u 1\n%u %u %u\n", root, cells->base, cells->base, cells->count);
}

/* The second id of the slice is not in P: a process that became root of P has no power over the brig-proxy. */
static int write_profile_id_maps(pid_t pid, const struct id_range *slice, uint32_t gid, struct err *e)
{
	struct id_range cells = { .base = slice->base + IDS_PER_CELL, .count = slice->count - IDS_PER_CELL };
	char      path[48], text[128];
	scoped_fd proc = -1;

	snprintf(path, sizeof path, "/proc/%d", pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	format_id_map(text, sizeof text, slice->base, &cells);
	if (proc < 0 || file_write_existing(proc, "uid_map", text) < 0)
		return err_sys(e, "user namespace of the profile: uid_map (CAP_SETUID is needed)");
	format_id_map(text, sizeof text, gid, &cells);
	return file_write_existing(proc, "gid_map", text) < 0 ? err_sys(e, "user namespace of the profile: gid_map (CAP_SETGID is needed)")
						   : 0;
}

/* --- one supervisor --- */

static pid_t clone_supervisor(struct profile_userns *r, int sock, int go[2], const struct profile_userns_options *w)
{
	bool              is_new = w->rootless->kind == ROOTLESS_KEPT;
	struct clone_args args   = {
		  .flags       = CLONE_PIDFD | (is_new ? CLONE_NEWUSER | CLONE_NEWNS : 0),
		  .pidfd       = (uint64_t)(uintptr_t)&r->pidfd,
		  .exit_signal = SIGCHLD,
	};
	pid_t pid = clone3(&args, sizeof args);

	if (pid < 0)
		r->pidfd = -1;
	if (pid != 0)
		return pid;
	close(go[1]);
	exec_supervisor(sock, go[0], is_new);
}

/* The monitor must be dumpable when it clones the child, or it could not write to the child's files in /proc. */
static int start_supervisor(struct profile_userns *r, const struct profile_userns_options *w, int sock, struct err *e)
{
	int   go[2], result = 0;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0 || privilege_make_dumpable(e) < 0)
		return err_sys(e, "supervisor");
	pid = clone_supervisor(r, sock, go, w);
	if (pid < 0)
		result = err_sys(e, "user namespace of the profile (brig doctor says what this host lacks)");
	else if (w->rootless->kind == ROOTLESS_KEPT)
		result = write_profile_id_maps(pid, &r->share->slice, w->gid, e);
	if (result == 0 && write(go[1], "", 1) != 1)
		result = err_sys(e, "supervisor");
	close(go[0]);
	close(go[1]);
	return privilege_make_undumpable(e) < 0 ? -1 : result;
}

static int send_supervisor_setup(const struct profile_userns *r, const struct profile_userns_options *w, struct err *e)
{
	const int               fds[] = { w->filter_fd, r->report_fd, w->trust_fd };
	struct supervisor_setup setup;

	memset(&setup, 0, sizeof setup);
	memcpy(setup.rootfs, w->profile->rootfs, sizeof setup.rootfs);
	memcpy(setup.profile, w->profile->name, sizeof setup.profile);
	memcpy(setup.preload, w->profile->preload, sizeof setup.preload);
	memcpy(setup.rootless_why, w->rootless->why, sizeof setup.rootless_why);
	setup.workspace_exec   = w->profile->workspace_exec;
	setup.require_all      = w->profile->require_all;
	setup.warm             = w->profile->warm;
	setup.zygote_cells     = w->profile->zygote_cells;
	setup.zygote_ms        = w->profile->zygote_ms;
	setup.cpus             = w->profile->limits.cpus;
	setup.wall_ms_max      = w->profile->ceilings.wall_ms;
	setup.tool_wait_ms_max = w->profile->ceilings.tool_wait_ms;
	setup.lifetime_ms_max  = w->profile->ceilings.lifetime_ms;
	setup.rootless_kind    = w->rootless->kind;
	setup.has_network      = w->profile->has_network;
	setup.listeners        = w->profile->listeners;
	setup.has_trust        = w->trust_fd >= 0;
	errno                  = -packet_send(r->supervisor, &setup, sizeof setup, fds, ARRAY_LEN(fds) - !setup.has_trust);
	return errno ? err_sys(e, "supervisor: setup") : 0;
}

/* The first slot is for P's root and brig-proxy; the others are for cells. */
void id_share_init_slice(struct share *ret, const struct id_range *ids, uint32_t number, uint32_t of, int lock_fd)
{
	uint32_t        slots = id_range_reserve(ids) / of;
	struct id_range cells = { .base = ids->base + (slots * number + 1) * IDS_PER_CELL, .count = (slots - 1) * IDS_PER_CELL };

	*ret = (struct share){ .slice = { .base = cells.base - IDS_PER_CELL, .count = slots * IDS_PER_CELL } };
	id_pool_init_in_memory(&ret->ids, &cells, slots * number + 1, lock_fd);
}

void id_share_init_whole_range(struct share *ret, const struct id_range *ids, const char *runtime)
{
	*ret = (struct share){ .slice = *ids };
	id_pool_init_with_lock_files(&ret->ids, ids, runtime);
}

/*
 * The socket holds some dozens of messages, and a supervisor needs about a millisecond for each: one that does not
 * read for a second hangs.
 */
int profile_userns_start(struct profile_userns *r, const struct profile_userns_options *w, struct err *e)
{
	const struct timeval second = { .tv_sec = 1 };
	int                  pair[2], result;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "supervisor: socketpair");
	r->report_fd  = zygote_report_open(); /* what the previous supervisor has written is not true any more */
	r->supervisor = pair[0];
	if (setsockopt(r->supervisor, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second) < 0)
		result = err_sys(e, "supervisor: time limit for sending");
	else
		result = start_supervisor(r, w, pair[1], e);
	close(pair[1]);
	if (result == 0 && r->report_fd < 0)
		result = err_sys(e, "supervisor: report");
	if (result == 0)
		result = send_supervisor_setup(r, w, e);
	if (result < 0)
		profile_userns_kill(r);
	return result;
}

void profile_userns_kill(struct profile_userns *r)
{
	fd_closep(&r->supervisor);
	fd_closep(&r->report_fd);
	if (r->pidfd >= 0)
		pidfd_send_signal(r->pidfd, SIGKILL, NULL, 0);
	fd_closep(&r->pidfd);
}
