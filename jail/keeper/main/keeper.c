/* keeper.c - two programs in one file: the keeper, and the spawner that it executes in a namespace of its own */
#define _GNU_SOURCE
#include "keeper.h"
#include "spawner_protocol.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Started by brigd, and by nobody else. */
static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

int main(int argc, char **argv)
{
	int self;

	if (argc < 1 || !is_socket(KEEPER_FD)) {
		fputs("keeper: is started by brigd(8), and serves nobody else\n", stderr);
		return 2;
	}
	fcntl(KEEPER_FD, F_SETFD, FD_CLOEXEC);
	fcntl(KEEPER_LOCK_FD, F_SETFD, FD_CLOEXEC);
	fcntl(KEEPER_RULES_FD, F_SETFD, FD_CLOEXEC);
	if (argc == 2 && strcmp(argv[1], "--spawner") == 0)
		spawner_main();
	self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	if (self < 0) {
		perror("keeper: /proc/self/exe");
		return EXIT_FAILURE;
	}
	return keeper_main(self);
}
