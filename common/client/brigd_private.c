#define _GNU_SOURCE
#include "brigd_private.h"

#include "exec_env.h"
#include "fd.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { THEIRS = 3 }; /* brigd's end of the socket has this number there; argv has it too */

/*
 * brigd is started by brig, which sees that by argv[0]: AppArmor's profile can allow user namespaces only to a program that loads no code of
 * its caller, and brig is static. What brig itself starts has its profile already.
 */
static const char *program_to_exec(const char *program, char brig[PATH_SIZE])
{
	const char *slash = strrchr(program, '/');
	char        self[PATH_SIZE];

	if (!slash || strcmp(program, BRIG_SBINDIR "/brigd") == 0)
		snprintf(brig, PATH_SIZE, "%s", BRIG_BINDIR "/brig");
	else
		snprintf(brig, PATH_SIZE, "%.*s/brig", (int)(slash - program), program);
	if (find_path_of_program(self) && strcmp(self, brig) == 0)
		return program;
	return access(program, X_OK) == 0 && access(brig, X_OK) == 0 ? brig : program;
}

/*
 * 0 or an errno. posix_spawn() does not copy the caller's memory: the child runs on it until its exec. brigd gets no other open file of
 * the caller, not even its standard streams: errors come through the connection. It gets a new session, so that keys of the terminal
 * signal only the caller. Signals that the caller ignores or blocks are reset.
 */
static int spawn_brigd(const char *program, char *const *argv, int theirs, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t          state;
	sigset_t                   all, none;
	char                       brig[PATH_SIZE];
	char                     **env = exec_env_filtered();
	int                        r   = env ? posix_spawn_file_actions_init(&files) : ENOMEM;

	if (r) {
		free(env);
		return r;
	}
	r = posix_spawnattr_init(&state); /* does not fail with glibc */
	memset(&all, 0xff, sizeof all); /* sigfillset() leaves out the C library's own two, which posix_spawn() would then ignore for good */
	sigemptyset(&none);
	r = r || theirs < 0 ? r : posix_spawn_file_actions_adddup2(&files, theirs, THEIRS);
	r = r ? r : posix_spawn_file_actions_addclosefrom_np(&files, theirs < 0 ? THEIRS : THEIRS + 1);
	r = r ? r : posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	r = r ? r : posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDOUT_FILENO);
	r = r ? r : posix_spawn_file_actions_adddup2(&files, STDIN_FILENO, STDERR_FILENO);
	r = r ? r : posix_spawnattr_setsigdefault(&state, &all);
	r = r ? r : posix_spawnattr_setsigmask(&state, &none);
	r = r ? r : posix_spawnattr_setflags(&state, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	r = r ? r : posix_spawn(pid, program_to_exec(program, brig), &files, &state, argv, env);
	posix_spawnattr_destroy(&state);
	posix_spawn_file_actions_destroy(&files);
	free(env);
	return r;
}

int brigd_start(struct brigd *ret, const char *program, struct err *e)
{
	static char *const argv[] = { (char *)"brigd", (char *)"--private", (char *)"--fd", (char *)"3", NULL };
	int                pair[2];
	pid_t              pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "set-up step start-brigd: socketpair");
	scoped_fd ours = pair[0], theirs = pair[1];

	errno = spawn_brigd(program, argv, theirs, &pid);
	if (errno)
		return err_sys(e, "set-up step start-brigd: %s", program);
	*ret = (struct brigd){ .sock = fd_take(&ours), .pid = pid };
	snprintf(ret->name, sizeof ret->name, "%s", program);
	return 0;
}

pid_t brigd_start_own(const char *program, const char *path, struct err *e)
{
	char *const argv[] = { (char *)"brigd", (char *)"--foreground", (char *)"--socket", (char *)path, NULL };
	pid_t       pid = -1;

	errno = spawn_brigd(program, argv, -1, &pid);
	return errno ? err_sys(e, "set-up step start-brigd: %s", program) : pid;
}
