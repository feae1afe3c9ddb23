#define _GNU_SOURCE
#include "clone.h"
#include "sys.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

pid_t clone_into_group(const struct clone_args *args, int group)
{
	struct clone_args all = *args;
	pid_t             pid;

	if (group >= 0) {
		all.flags |= CLONE_INTO_CGROUP;
		all.cgroup = (uint64_t)group;
	}
	for (int tries = 0;
	     (pid = clone3(&all, sizeof all)) < 0 && errno == EACCES && group >= 0 && tries < CLONE_LENT_MS; tries++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return pid;
}
