#define _GNU_SOURCE
#include "cg_members.h"

#include "fd.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>

enum { LIST_BYTES = 64 * MIB }; /* more than the pids of all processes that a kernel can have, 2^22 */

bool cg_members_read(int dir, struct bytes *ret)
{
	struct err ignored;

	return file_read(dir, "cgroup.procs", LIST_BYTES, ret, &ignored) == 0;
}

pid_t cg_members_next_pid(const char **at)
{
	while (**at) {
		char *end;
		pid_t pid = (pid_t)strtol(*at, &end, 10);

		*at = end + (*end == '\n');
		if (pid > 0)
			return pid;
	}
	return 0;
}

static bool is_cgroup_member(int dir, pid_t pid)
{
	scoped_bytes list = { 0 };
	const char  *at   = cg_members_read(dir, &list) ? list.data : "";

	for (pid_t one; (one = cg_members_next_pid(&at)) > 0;)
		if (one == pid)
			return true;
	return false;
}

/* By the time of pidfd_open() the pid may be another process's, so it is looked for in the list once more. */
bool cg_member_kill(int dir, pid_t pid)
{
	scoped_fd process = pidfd_open(pid, 0);

	return process >= 0 && is_cgroup_member(dir, pid) && pidfd_send_signal(process, SIGKILL, NULL, 0) == 0;
}
