#define _GNU_SOURCE
#include "proxy_exec.h"

#include "proxy_protocol.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { CLEAR_OF_LOW = 16 };

/* Moves all descriptors above the low numbers first, and then to the numbers that brig-proxy knows. */
static int place_proxy_descriptors(int *program, int sock, int config, int lock)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	*program = fcntl(*program, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	sock     = fcntl(sock, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	config   = fcntl(config, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	lock     = fcntl(lock < 0 ? null : lock, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	if (null < 0 || *program < 0 || sock < 0 || config < 0 || lock < 0)
		return -1;
	/* Or a reader of the caller's output would wait until brig-proxy ends. */
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	if (dup2(sock, PROXY_FD) < 0 || dup2(config, PROXY_CONFIG_FD) < 0 || dup2(lock, PROXY_LOCK_FD) < 0)
		return -1;
	return close_range(PROXY_FDS_END, ~0u, CLOSE_RANGE_CLOEXEC);
}

void proxy_exec(int program, int sock, int config, int lock)
{
	char *const argv[] = { (char *)"brig-proxy", NULL }, *const none[] = { NULL };
	sigset_t    empty;

	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	signal(SIGCHLD, SIG_DFL);
	if (place_proxy_descriptors(&program, sock, config, lock) == 0)
		execveat(program, "", argv, none, AT_EMPTY_PATH);
}
