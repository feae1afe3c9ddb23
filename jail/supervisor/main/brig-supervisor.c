/* supervisor.c - what the monitor executes in the namespace of a profile */
#define _GNU_SOURCE
#include "supervisor.h"

#include "packet.h"

#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	(void)argv;
	if (argc < 1 || !packet_is_socket(SUPERVISOR_FD)) {
		fputs("supervisor: is started by the monitor of brigd(8), and serves nothing else\n", stderr);
		return 2;
	}
	fcntl(SUPERVISOR_FD, F_SETFD, FD_CLOEXEC);
	supervisor_main();
}
