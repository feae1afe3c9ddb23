/* supervisor.c - what the keeper executes in the namespace of a profile */
#define _GNU_SOURCE
#include "supervisor.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* Started by the keeper, and by nothing else. */
static bool is_socket(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode);
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc < 1 || !is_socket(SUPERVISOR_FD)) {
		fputs("supervisor: is started by the keeper of brigd(8), and serves nothing else\n", stderr);
		return 2;
	}
	fcntl(SUPERVISOR_FD, F_SETFD, FD_CLOEXEC);
	supervisor_main();
}
