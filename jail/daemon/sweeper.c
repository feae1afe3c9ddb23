#define _GNU_SOURCE
#include "sweeper.h"

#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Descriptors of the sweeper. While the socket's file is held open, no other file can get its inode number. */
enum { LIFELINE = 3, FOLDER, FILE_HELD, LOCK, GROUPS, CLEAR = GROUPS + CG_TREES_MAX };

/*
 * For the last processes in the groups: the monitor ends within 5 s, and dead ones count until PID 1 reaps them, on
 * some hosts once a second.
 */
enum { DYING_MS_MAX = 30000, DYING_STEP_MS = 20 };

struct sweeper_setup {
	int             lifeline, folder, file, lock;
	char            name[120]; /* of the file in the folder */
	struct cg_given groups;
};

static int restrict_sweeper_calls(void)
{
	static const int allowed[] = { SCMP_SYS(read),  SCMP_SYS(newfstatat), SCMP_SYS(unlinkat),
				       SCMP_SYS(close), SCMP_SYS(poll),       SCMP_SYS(exit_group) };
	scmp_filter_ctx  filter    = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int              r         = filter ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed); i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	r = r ? r : seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return r;
}

/* Signals of a terminal, or to all processes of the service, must not end the sweeper. */
static int sweeper_confine(const struct sweeper_setup *p)
{
	size_t   n    = p->groups.n;
	cap_t    none = cap_init();
	sigset_t all;

	sigfillset(&all);
	if (dup2(p->lifeline, LIFELINE) < 0 || dup2(p->folder, FOLDER) < 0 || dup2(p->file, FILE_HELD) < 0 ||
	    dup2(p->lock, LOCK) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (dup2(p->groups.above[i], GROUPS + (int)i) < 0)
			return -1;
	if (close_range(GROUPS + (unsigned)n, ~0u, 0) < 0)
		return -1;
	if (!none || cap_set_proc(none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -1;
	setsid();
	prctl(PR_SET_NAME, "brig-sweeper");
	return sigprocmask(SIG_BLOCK, &all, NULL) < 0 ? -1 : restrict_sweeper_calls();
}

static bool remove_service_groups(const struct sweeper_setup *p)
{
	bool is_gone = true;

	for (size_t i = 0; i < p->groups.n; i++)
		if (unlinkat(GROUPS + (int)i, p->groups.name[i], AT_REMOVEDIR) < 0 && errno == EBUSY)
			is_gone = false;
	return is_gone;
}

/* The lock and its file go after the socket's: until then the next service waits. */
static _Noreturn void wait_for_brigd_and_sweep(const struct sweeper_setup *p)
{
	char        nothing, lock[sizeof p->name + 8];
	struct stat held, there;

	snprintf(lock, sizeof lock, "%s.lock", p->name);
	if (sweeper_confine(p) < 0)
		_exit(EXIT_FAILURE);
	while (read(LIFELINE, &nothing, 1) > 0)
		;
	if (fstatat(FILE_HELD, "", &held, AT_EMPTY_PATH) == 0 &&
	    fstatat(FOLDER, p->name, &there, AT_SYMLINK_NOFOLLOW) == 0 && held.st_dev == there.st_dev &&
	    held.st_ino == there.st_ino) /* it is still ours */
		unlinkat(FOLDER, p->name, 0);
	unlinkat(FOLDER, lock, 0);
	close(LOCK);
	close(LIFELINE); /* brigd waits for it, and is in the groups */
	for (int ms = 0; ms < DYING_MS_MAX && !remove_service_groups(p); ms += DYING_STEP_MS)
		poll(NULL, 0, DYING_STEP_MS);
	_exit(EXIT_SUCCESS);
}

/* Above the fixed numbers, so that dup2() overwrites none of them. */
static int dup_above_fixed_fds(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, CLEAR);
}

/* A brigd that ends before it has sent them has made none. */
static int receive_service_groups(struct sweeper_setup *p)
{
	int     fds[CG_TREES_MAX];
	size_t  n   = 0;
	ssize_t got = packet_receive(p->lifeline, p->groups.name, sizeof p->groups.name, fds, ARRAY_LEN(fds), &n);

	for (size_t i = 0; got > 0 && i < n; i++) {
		p->groups.above[i] = dup_above_fixed_fds(fds[i]);
		if (p->groups.above[i] < 0)
			return -1;
	}
	p->groups.n = got > 0 ? n : 0;
	return got < 0 ? -1 : 0;
}

static _Noreturn void run_sweeper_process(const struct sweeper_setup *at)
{
	struct sweeper_setup p = *at;

	p.lifeline = dup_above_fixed_fds(p.lifeline);
	p.folder   = dup_above_fixed_fds(p.folder);
	p.file     = dup_above_fixed_fds(p.file);
	p.lock     = dup_above_fixed_fds(p.lock);
	if (p.lifeline < 0 || p.folder < 0 || p.file < 0 || p.lock < 0 || receive_service_groups(&p) < 0)
		_exit(EXIT_FAILURE);
	wait_for_brigd_and_sweep(&p);
}

static int fork_sweeper(struct sweeper *ret, struct sweeper_setup *p, struct err *e)
{
	int   pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	p->lifeline = pair[0];
	pid         = fork();
	if (pid == 0) {
		close(pair[1]);
		run_sweeper_process(p);
	}
	close(pair[0]);
	*ret = (struct sweeper){ pair[1] };
	if (pid > 0)
		return 0;
	sweeper_close_and_wait(ret);
	return err_sys(e, "fork");
}

int sweeper_start(struct sweeper *ret, const struct listener *l, struct err *e)
{
	const char *slash  = strrchr(l->path, '/');
	scoped_fd   folder = -1, file = -1;
	struct sweeper_setup p = { .lock = l->lock };
	char        path[sizeof l->path];

	*ret = SWEEPER_NONE;
	if (!slash)
		return 0;
	snprintf(path, sizeof path, "%.*s", (int)(slash - l->path), l->path);
	folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder < 0)
		return err_sys(e, "%s", path);
	file = openat(folder, slash + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_sys(e, "%s", l->path);
	p.folder = folder;
	p.file   = file;
	snprintf(p.name, sizeof p.name, "%s", slash + 1);
	return fork_sweeper(ret, &p, e);
}

int sweeper_send_groups(const struct sweeper *s, const struct cg_given *groups, struct err *e)
{
	int r = s->lifeline < 0 ? 0
				: packet_send(s->lifeline, groups->name, sizeof groups->name, groups->above, groups->n);

	errno = -r;
	return r < 0 ? err_sys(e, "the sweeper") : 0;
}

void sweeper_close_and_wait(struct sweeper *s)
{
	char nothing;

	if (s->lifeline < 0)
		return;
	shutdown(s->lifeline, SHUT_WR);
	while (read(s->lifeline, &nothing, 1) < 0 && errno == EINTR)
		;
	fd_closep(&s->lifeline);
}
