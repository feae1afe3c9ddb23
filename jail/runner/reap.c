#include "reap.h"

#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>

void reap_unknown_children(bool (*is_known)(const void *, pid_t), const void *arg)
{
	siginfo_t child = { 0 };

	while (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0 && child.si_pid &&
	       !is_known(arg, child.si_pid)) {
		waitpid(child.si_pid, NULL, WNOHANG);
		child.si_pid = 0;
	}
}

void reap_all_children(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}
