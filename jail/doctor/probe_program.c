/* probe_program.c - the row that runs a program in a jail */
#define _GNU_SOURCE
#include "probe_kit.h"

#include "child_wait.h"
#include "fd.h"
#include "file.h"
#include "paths.h"
#include "sealed.h"
#include "store.h"
#include "text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM "print('ran')\n"

static bool check_brig_run_output(struct probe *p, int status, char *output)
{
	char        cause[256], *end = output + strlen(output);
	const char *last;

	if (status == 0 && begins_with(output, "ran\n"))
		return report_detail(p, "brig run has run a program");
	while (end > output && end[-1] == '\n')
		*--end = 0;
	last = strrchr(output, '\n') ? strrchr(output, '\n') + 1 : output; /* the reason of a failure */
	snprintf(cause, sizeof cause, "brig run ends with %d: %.200s", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
	         last);
	text_make_plain(cause);
	return report_missing(p, cause, "repair what the message names, and the rows above that are not ok");
}

/* Executes "brig run -" with the program on its standard input. */
static bool try_brig_run(struct probe *p, const char *brig)
{
	scoped_bytes output = { 0 };
	int          ends[2], status;
	struct err   e;
	scoped_fd    program = sealed_create("main.py", PROGRAM, sizeof PROGRAM - 1, &e), from = -1, to = -1;
	pid_t        pid;

	if (program < 0)
		return report_missing(p, e.text, "see memfd-exec");
	if (!check_sys_result(p, pipe2(ends, O_CLOEXEC), "pipe"))
		return false;
	from = ends[0];
	to   = ends[1];
	pid  = fork();
	if (pid == 0) {
		if (lseek(program, 0, SEEK_SET) == 0 && dup2(program, STDIN_FILENO) >= 0 && dup2(to, STDOUT_FILENO) >= 0 &&
		    dup2(to, STDERR_FILENO) >= 0)
			execl(brig, "brig", "run", "-", NULL);
		_exit(127);
	}
	fd_closep(&to);
	if (!check_sys_result(p, pid, "fork"))
		return false;
	if (file_read_fd(from, "the output of brig run", MIB, &output, &e) < 0)
		return report_missing(p, e.text, "");
	status = child_wait(pid);
	return check_brig_run_output(p, status, output.data);
}

static bool has_rootfs_with_python(const struct brig_paths *at)
{
	scoped_store_tree tree = STORE_TREE_NONE;
	struct err        e;

	return store_open_tree_in_first((const char *const[]){ at->store[0], at->store[1] }, DEFAULT_PROFILE, &tree, &e) == 0 &&
	       faccessat(tree.tree_fd, "usr/bin/python3", F_OK, 0) == 0;
}

/*
 * systemd has executed our parent, brig doctor, before the service starts. The service's socket listens already, so
 * brig run would connect and wait in vain.
 */
static bool is_before_service_start(void)
{
	const char *pid = secure_getenv("SYSTEMD_EXEC_PID");
	uint64_t    n;

	return pid && text_to_u64(pid, &n) == 0 && n == (uint64_t)getppid();
}

/* Runs the program as the user that calls brig doctor. The monitor's account of a service starts no runs. */
bool probe_program(struct probe *p)
{
	struct brig_paths at;
	struct err        e;
	char              brig[PATH_SIZE + 8];

	if (p->at->is_monitor || is_before_service_start())
		return report_detail(p, "not tested: the first run of the service shows it");
	if (brig_paths_find(&at, &e) < 0)
		return report_missing(p, e.text, "see profile");
	snprintf(brig, sizeof brig, "%s/brig", at.libexec);
	if (access(brig, X_OK) < 0 || !has_rootfs_with_python(&at))
		return report_detail(p, "not tested: it needs %.100s, and a rootfs with python3", brig);
	return try_brig_run(p, brig);
}
