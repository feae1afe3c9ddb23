/* brig-mcp-remote.c - the client of one server of MCP at an address, for brig-mcp --servers; see remote.h */
#include "remote.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * This process parses data from the network and holds secrets: it must not gain privileges by an exec, and no other process of
 * the user may read its memory.
 */
static int lock_privileges_and_dumpable(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1 || isatty(STDIN_FILENO)) {
		fputs("brig-mcp-remote is started by brig-mcp --servers; see brig-mcp(1)\n", stderr);
		return 2;
	}
	if (lock_privileges_and_dumpable() < 0) {
		perror("prctl");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	return remote_serve();
}
