#define _GNU_SOURCE
#include "ownerless.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_FILE_HAS_IT = -2 }; /* a map may not be empty: this id is in it, and no other */

/* The namespace needs a process until it is open; this one waits to be killed, or to be left alone. */
static pid_t clone_holder(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep(10); /* as long as the set-up may take: the launcher may have died before the line above */
		_exit(0);
	}
	return (pid_t)pid;
}

static int open_of(pid_t holder, uint32_t id, struct err *e)
{
	char      path[48], map[64];
	scoped_fd proc = -1, ns = -1;

	snprintf(path, sizeof path, "/proc/%d", holder);
	snprintf(map, sizeof map, "%" PRIu32 " %" PRIu32 " 1\n", (uint32_t)NO_FILE_HAS_IT, id);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (proc < 0 || file_put(proc, "uid_map", map) < 0 || file_put(proc, "gid_map", map) < 0)
		return err_sys(e, "set-up step open-rootfs: --ro: id map");
	ns = openat(proc, "ns/user", O_RDONLY | O_CLOEXEC);
	return ns < 0 ? err_sys(e, "set-up step open-rootfs: --ro: user namespace") : fd_take(&ns);
}

int ownerless_open(uint32_t id, struct err *e)
{
	pid_t holder = clone_holder();
	int   fd;

	if (holder < 0)
		return err_sys(e, "set-up step open-rootfs: --ro: clone");
	fd = open_of(holder, id, e);
	kill(holder, SIGKILL);
	while (waitpid(holder, NULL, 0) < 0 && errno == EINTR)
		;
	return fd;
}
