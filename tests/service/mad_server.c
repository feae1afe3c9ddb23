#define _GNU_SOURCE
#include "mad_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn void give_up(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(EXIT_FAILURE);
}

int must(int r, const char *what)
{
	return r < 0 ? (give_up(what), -1) : r;
}

int memory(const void *bytes, size_t len, int seals)
{
	int fd = must(memfd_create("lie", MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create");

	if (write(fd, bytes, len) != (ssize_t)len || (seals && fcntl(fd, F_ADD_SEALS, seals) < 0))
		give_up("memfd");
	return fd;
}

struct monitor_setup setup_of(const char *store, const char *runtime)
{
	struct monitor_setup setup = { .mode = MONITOR_SERVICE, .id_base = 0x60000000, .id_count = 65536 };

	snprintf(setup.store[0], sizeof setup.store[0], "%s", store);
	snprintf(setup.runtime, sizeof setup.runtime, "%s", runtime);
	return setup;
}

/* Beside it, as where it is installed. */
static int open_supervisor(const char *monitor)
{
	enum { CLEAR_OF_LOW = 16 };
	char path[4096];

	snprintf(path, sizeof path, "%.*ssupervisor", (int)(strrchr(monitor, '/') + 1 - monitor), monitor);
	return must(fcntl(must(open(path, O_PATH | O_CLOEXEC), path), F_DUPFD_CLOEXEC, CLEAR_OF_LOW), "fcntl");
}

pid_t start_monitor(const char *program, int *sock, int *rules)
{
	enum { CLEAR_OF_LOW = 16 };
	int   pair[2], other[2], theirs, told, supervisor = open_supervisor(program);
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, other), "socketpair");
	*sock  = must(fcntl(pair[0], F_DUPFD_CLOEXEC, CLEAR_OF_LOW), "fcntl");
	*rules = must(fcntl(other[0], F_DUPFD_CLOEXEC, CLEAR_OF_LOW), "fcntl");
	theirs = must(fcntl(pair[1], F_DUPFD_CLOEXEC, CLEAR_OF_LOW), "fcntl");
	told   = must(fcntl(other[1], F_DUPFD_CLOEXEC, CLEAR_OF_LOW), "fcntl");
	for (int i = 0; i < 2; i++) {
		close(pair[i]);
		close(other[i]);
	}
	pid = must(fork(), "fork");
	if (pid == 0 && dup2(theirs, MONITOR_FD) >= 0 && dup2(told, MONITOR_RULES_FD) >= 0 && dup2(supervisor, MONITOR_SUPERVISOR_FD) >= 0)
		execl(program, "monitor", (char *)NULL);
	if (pid == 0)
		_exit(127);
	close(theirs);
	close(told);
	close(supervisor);
	return pid;
}
