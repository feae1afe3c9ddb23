#define _GNU_SOURCE
#include "sweeper.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Descriptors of the sweeper. While the socket's file is held open, no other file can get its inode number. */
enum { LIFELINE = 3, FOLDER, FILE_HELD, LOCK };

struct sweeper_setup {
	int  lifeline, folder, file, lock;
	char name[120]; /* of the file in the folder */
};

static int restrict_calls(void)
{
	static const int allowed[] = { SCMP_SYS(read), SCMP_SYS(newfstatat), SCMP_SYS(unlinkat), SCMP_SYS(exit_group) };
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
static int confine(const struct sweeper_setup *p)
{
	cap_t    none = cap_init();
	sigset_t all;

	sigfillset(&all);
	if (dup2(p->lifeline, LIFELINE) < 0 || dup2(p->folder, FOLDER) < 0 || dup2(p->file, FILE_HELD) < 0 ||
	    dup2(p->lock, LOCK) < 0 || close_range(LOCK + 1, ~0u, 0) < 0)
		return -1;
	if (!none || cap_set_proc(none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return -1;
	setsid();
	prctl(PR_SET_NAME, "brig-sweeper");
	return sigprocmask(SIG_BLOCK, &all, NULL) < 0 ? -1 : restrict_calls();
}

static bool is_still_ours(const char *name)
{
	struct stat held, there;

	return fstatat(FILE_HELD, "", &held, AT_EMPTY_PATH) == 0 && fstatat(FOLDER, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
	       held.st_dev == there.st_dev && held.st_ino == there.st_ino;
}

/* The lock and its file go last: until then the next service waits. */
static _Noreturn void wait_and_sweep(const struct sweeper_setup *p)
{
	char nothing, lock[sizeof p->name + 8];

	snprintf(lock, sizeof lock, "%s.lock", p->name);
	if (confine(p) < 0)
		_exit(EXIT_FAILURE);
	while (read(LIFELINE, &nothing, 1) > 0)
		;
	if (is_still_ours(p->name))
		unlinkat(FOLDER, p->name, 0);
	unlinkat(FOLDER, lock, 0);
	_exit(EXIT_SUCCESS);
}

static int open_folder(const struct listener *l, const char *slash, struct err *e)
{
	char folder[sizeof l->path];
	int  fd;

	memcpy(folder, l->path, sizeof folder);
	folder[slash - l->path] = 0;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s", folder) : fd;
}

/* Above the fixed numbers, so that dup2() overwrites none of them. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, LOCK + 1);
}

static _Noreturn void become_sweeper(const struct sweeper_setup *at)
{
	struct sweeper_setup p = *at;

	p.lifeline = move_up(p.lifeline);
	p.folder   = move_up(p.folder);
	p.file     = move_up(p.file);
	p.lock     = move_up(p.lock);
	if (p.lifeline < 0 || p.folder < 0 || p.file < 0 || p.lock < 0)
		_exit(EXIT_FAILURE);
	wait_and_sweep(&p);
}

static int fork_sweeper(struct sweeper *ret, struct sweeper_setup *p, struct err *e)
{
	int   pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	p->lifeline = pair[0];
	pid         = fork();
	if (pid == 0) {
		close(pair[1]);
		become_sweeper(p);
	}
	close(pair[0]);
	*ret = (struct sweeper){ pair[1], pid };
	if (pid > 0)
		return 0;
	sweeper_end(ret);
	return err_sys(e, "fork");
}

int sweeper_start(struct sweeper *ret, const struct listener *l, struct err *e)
{
	const char *slash  = strrchr(l->path, '/');
	scoped_fd   folder = -1, file = -1;
	struct sweeper_setup p = { .lock = l->lock };

	*ret = SWEEPER_NONE;
	if (!slash)
		return 0;
	folder = open_folder(l, slash, e);
	if (folder < 0)
		return -1;
	file = openat(folder, slash + 1, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0)
		return err_sys(e, "%s", l->path);
	p.folder = folder;
	p.file   = file;
	snprintf(p.name, sizeof p.name, "%s", slash + 1);
	return fork_sweeper(ret, &p, e);
}

void sweeper_end(struct sweeper *s)
{
	fd_closep(&s->lifeline);
	while (s->pid > 0 && waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
}
