/* child_wait.h - the end of a child process */
#pragma once
#include <errno.h>
#include <sys/wait.h>

/* Waits for it, whatever signals arrive. The wait status; -1: there is no such child. */
static inline int child_wait(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}
