#define _GNU_SOURCE
#include "mad_door.h"

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

struct keeper_setup setup_of(const char *store, const char *runtime)
{
	struct keeper_setup setup = { .mode = KEEPER_SERVICE, .id_base = 0x60000000, .id_count = 65536 };

	snprintf(setup.store[0], sizeof setup.store[0], "%s", store);
	snprintf(setup.runtime, sizeof setup.runtime, "%s", runtime);
	return setup;
}

pid_t start_keeper(const char *program, int *sock)
{
	int   pair[2];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), "socketpair");
	*sock = pair[0];
	pid   = must(fork(), "fork");
	if (pid) {
		close(pair[1]);
		return pid;
	}
	if ((pair[1] == KEEPER_FD ? fcntl(KEEPER_FD, F_SETFD, 0) : dup2(pair[1], KEEPER_FD)) >= 0)
		execl(program, "keeper", (char *)NULL);
	_exit(127);
}
