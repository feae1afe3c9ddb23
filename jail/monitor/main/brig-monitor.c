/* monitor.c - the process of a service that keeps host ids and control groups */
#define _GNU_SOURCE
#include "monitor.h"
#include "monitor_protocol.h"
#include "packet.h"

#include <fcntl.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	(void)argv;
	if (argc < 1 || !packet_is_socket(MONITOR_FD)) {
		fputs("monitor: is started by brigd(8), and serves nothing else\n", stderr);
		return 2;
	}
	for (int fd = MONITOR_FD; fd < MONITOR_FDS_END; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return monitor_main();
}
