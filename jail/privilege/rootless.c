#define _GNU_SOURCE
#include "rootless.h"

#include "child_wait.h"
#include "clock.h"
#include "fd.h"
#include "file.h"
#include "privilege.h"
#include "sub_ids.h"
#include "surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- newuidmap and newgidmap: outside of P, where their setuid bit has an effect --- */

enum { MAPPERS_MS_MAX = 5000 }; /* they may have to ask a directory server about our user */

struct mapper {
	const char *program;
	pid_t       pid;
	int         go; /* our end of a pipe to the child: a byte says that P exists, end of file that it is to give up */
};

/* Passes the program nothing but our pid, our own id and the range. */
static _Noreturn void exec_id_mapper(const char *program, const char *target, int go, uint32_t own, const struct id_range *range)
{
	char  text[3][12];
	char *argv[] = { (char *)program, (char *)target, "0", text[0], "1", "1", text[1], text[2], NULL }, *none[] = { NULL };
	int   null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char  byte;

	snprintf(text[0], sizeof text[0], "%u", own);
	snprintf(text[1], sizeof text[1], "%u", range->base);
	snprintf(text[2], sizeof text[2], "%u", range->count);
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(null, fd) < 0)
			_exit(1);
	if (read(go, &byte, 1) == 1 && close_range(3, ~0u, 0) == 0)
		execve(program, argv, none);
	_exit(127);
}

static int fork_id_mapper(struct mapper *m, uint32_t own, const struct id_range *range, struct err *e)
{
	char target[12];
	int  go[2];

	snprintf(target, sizeof target, "%d", getpid());
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(e, "set-up step rootless-namespace: pipe");
	m->pid = fork();
	if (m->pid == 0) {
		close(go[1]);
		exec_id_mapper(m->program, target, go[0], own, range);
	}
	close(go[0]);
	m->go = go[1];
	return m->pid < 0 ? err_sys(e, "set-up step rootless-namespace: fork") : 0;
}

/* The program's exit status; -1 when it was killed, or is killed here because it has not ended by the deadline (CLOCK_MONOTONIC ms). */
static int wait_for_id_mapper(struct mapper *m, double deadline)
{
	scoped_fd pin  = pidfd_open(m->pid, 0);
	double    left = deadline - clock_ms(CLOCK_MONOTONIC);
	int       status;

	fd_closep(&m->go);
	if (pin < 0 || poll(&(struct pollfd){ pin, POLLIN, 0 }, 1, left > 0 ? (int)left : 0) <= 0)
		kill(m->pid, SIGKILL);
	status = child_wait(m->pid);
	m->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct mappers {
	struct mapper uid, gid;
};

static void end_id_mappers(struct mappers *m)
{
	if (m->uid.pid > 0)
		(void)wait_for_id_mapper(&m->uid, 0);
	if (m->gid.pid > 0)
		(void)wait_for_id_mapper(&m->gid, 0);
}

/* --- a range or one id --- */

/* clang-format off */
#define FIX_MAPPERS "as root: apt install uidmap (elsewhere: shadow-utils or shadow)"
#define FIX_SETUID  "as root: chmod u+s /usr/bin/newuidmap /usr/bin/newgidmap, on a mount without nosuid"
#define FIX_SLOW    "again, once the directory server that /etc/nsswitch.conf names answers (id USER)"
#define FIX_PRIVS   "start brig without no_new_privs (unit: NoNewPrivileges=no)"
/* clang-format on */

static void set_rootless_reason(struct rootless *o, const char *why, const char *fix)
{
	snprintf(o->why, sizeof o->why, "%.190s", why);
	o->fix = fix;
}

static enum rootless_kind choose_rootless_kind(struct rootless *o, const struct mappers *m, struct id_range *uids, struct id_range *gids)
{
	struct err e;

	if (sub_ids_read_for_user(uids, gids, &e) < 0)
		set_rootless_reason(o, e.text, NULL);
	else if (access(m->uid.program, X_OK) < 0 || access(m->gid.program, X_OK) < 0)
		set_rootless_reason(o, "newuidmap and newgidmap are not there", FIX_MAPPERS);
	else if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		set_rootless_reason(o, "no_new_privs is set, so newuidmap gets no power", FIX_PRIVS);
	else
		return ROOTLESS_RANGE;
	return ROOTLESS_SINGLE;
}

/* --- refusals of the host --- */

/* Cause and fix in the words of brig doctor. The capabilities that we have in P now do not count: on the host we had none. */
static int err_host_refused(const char *what, struct refusal r, struct err *e)
{
	struct surroundings at;
	enum refuser        by;
	char                cause[160], fix[320];

	surroundings_detect(&at);
	at.is_root = false;
	at.cap_eff = 0;
	by         = refusal_find_refuser(&r, &at);
	refusal_print_cause(&r, by, cause, sizeof cause);
	refusal_print_advice(&r, by, &at, fix, sizeof fix);
	errno = r.errnum;
	return err_set(e, ERR_SETUP, "set-up step rootless-namespace: %s: %s%s%s", what, cause, fix[0] ? "; " : "", fix);
}

/* --- the maps --- */

static int write_single_id_map(uint32_t uid, uint32_t gid, struct err *e)
{
	char uid_map[24], gid_map[24];

	snprintf(gid_map, sizeof gid_map, "0 %u 1", gid);
	snprintf(uid_map, sizeof uid_map, "0 %u 1", uid);
	if (file_write_existing(AT_FDCWD, "/proc/self/setgroups", "deny") < 0 || file_write_existing(AT_FDCWD, "/proc/self/gid_map", gid_map) < 0 ||
	    file_write_existing(AT_FDCWD, "/proc/self/uid_map", uid_map) < 0)
		return uid == 0 && errno == EPERM
			       ? err_set(e, ERR_SETUP,
					 "set-up step rootless-namespace: id maps: " ROOTLESS_ROOT_CAUSE "; " ROOTLESS_ROOT_FIX)
			       : err_host_refused("id maps", (struct refusal){ .errnum = errno }, e);
	return 0;
}

static int err_one_mapper_failed(const char *program, int status, struct err *e)
{
	if (status < 0)
		return err_set(e, ERR_SETUP, "set-up step rootless-namespace: %s was killed, or took longer than %d s", program,
			       MAPPERS_MS_MAX / 1000);
	return err_set(e, ERR_SETUP, "set-up step rootless-namespace: %s refused (status %d), though the other did not", program,
		       status);
}

/* Where both refuse, a single id is mapped instead. */
static int map_id_range(struct rootless *o, struct mappers *m, struct err *e)
{
	double deadline = clock_ms(CLOCK_MONOTONIC) + MAPPERS_MS_MAX;
	int    uid, gid;
	char   why[100];

	(void)!write(m->uid.go, "", 1);
	(void)!write(m->gid.go, "", 1);
	uid = wait_for_id_mapper(&m->uid, deadline);
	gid = wait_for_id_mapper(&m->gid, deadline);
	if (!uid != !gid)
		return uid ? err_one_mapper_failed(m->uid.program, uid, e) : err_one_mapper_failed(m->gid.program, gid, e);
	if (uid == 0)
		return 0;
	o->kind = ROOTLESS_SINGLE;
	if (uid < 0 && gid < 0)
		snprintf(why, sizeof why, "newuidmap and newgidmap were killed, or took longer than %d s", MAPPERS_MS_MAX / 1000);
	else
		snprintf(why, sizeof why, "newuidmap and newgidmap refused (status %d and %d)", uid, gid);
	set_rootless_reason(o, why, uid < 0 && gid < 0 ? FIX_SLOW : FIX_SETUID);
	return 0;
}

static int enter_mapped_userns(struct rootless *o, struct mappers *m, struct err *e)
{
	uint32_t uid = geteuid(), gid = getegid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0) {
		struct refusal r = { .errnum = errno, .limit = "user.max_user_namespaces", .config = "CONFIG_USER_NS" };

		/* An invalid flag: EINVAL from the kernel, another errno from a filter. */
		r.twin = unshare(CLONE_NEWUSER | CLONE_PTRACE) < 0 ? errno : 0;
		return err_host_refused("unshare(CLONE_NEWUSER)", r, e);
	}
	if (o->kind == ROOTLESS_RANGE && map_id_range(o, m, e) < 0)
		return -1;
	if (o->kind == ROOTLESS_SINGLE) {
		o->ids = (struct id_range){ .base = 0, .count = 1 };
		if (write_single_id_map(uid, gid, e) < 0)
			return -1;
	}
	/*
	 * As slaves, mounts that are unmounted on the host disappear here, too. Ubuntu allows the namespace but denies
	 * every capability in it; this is the first call that needs one.
	 */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_host_refused("slave mounts", (struct refusal){ .errnum = errno }, e);
	return 0;
}

static int enter_userns_as_user(struct rootless *o, struct err *e)
{
	scoped(end_id_mappers) struct mappers m = { { "/usr/bin/newuidmap", 0, -1 }, { "/usr/bin/newgidmap", 0, -1 } };
	struct id_range                     uids, gids;

	o->kind = choose_rootless_kind(o, &m, &uids, &gids);
	if (o->kind == ROOTLESS_RANGE) {
		o->ids = (struct id_range){ .base = 1, .count = uids.count };
		if (fork_id_mapper(&m.uid, getuid(), &uids, e) < 0 || fork_id_mapper(&m.gid, getgid(), &gids, e) < 0)
			return -1;
	}
	return enter_mapped_userns(o, &m, e);
}

int rootless_enter(struct rootless *ret, struct err *e)
{
	struct rootless o       = { .kind = ROOTLESS_NONE };
	int             is_root = privilege_check_is_root();

	if (is_root < 0)
		return err_sys(e, "set-up step rootless-namespace: our capabilities");
	if ((is_root ? sub_ids_choose_for_root(&o.ids, e) : enter_userns_as_user(&o, e)) < 0)
		return -1;
	*ret = o;
	return 0;
}
