/* taken_over.h - what a process of brig's that was taken over would do first, and how far it gets when it has confined itself */
#pragma once
#include "sys.h"
#include "tap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static int try_program(void)
{
	char *const argv[] = { (char *)"true", NULL };

	return execv("/bin/true", argv);
}

static int try_process(void)
{
	return fork();
}

static int try_signal(void)
{
	return kill(getppid(), 0);
}

static int try_trace(void)
{
	return (int)ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
}

static int try_namespace(void)
{
	return unshare(CLONE_NEWUSER);
}

static int try_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}

static int try_to_be_seen(void)
{
	return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

/* The errno of act(), 0 when it worked, 255 when the confinement itself failed. confined NULL: without one. */
static int outcome(int (*act)(void), int (*confined)(void))
{
	pid_t pid = fork();
	int   status;

	/* The call itself: before a function that does not return AddressSanitizer asks for its signal stack, which may be refused. */
	if (pid == 0)
		syscall(SYS_exit_group, confined && confined() < 0 ? 255 : act() < 0 ? errno : 0);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 254;
}
