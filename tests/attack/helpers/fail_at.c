/*
 * fail_at.c - runs a command and makes one system call of one of its processes fail
 *
 *   fail_at REPORT PROCESS CALL NTH ERRNO COMMAND [ARGUMENT]...
 *
 * PROCESS says whose child it is: 1 is the command itself, 1.2 its second child, 1.2.1 the first child of that one. NTH
 * counts that process's calls of the name CALL since its birth or the command's exec. strace can do neither: its counts are the same for every process. The call is not made, but for
 * close, which the kernel carries out whatever it answers.
 *
 * REPORT gets a line for the call that was failed ("failed"), for every exec of a process, with what it executes ("exec
 * 1.2 /usr/bin/python3.11"), and for every process that was there twenty seconds after the command had ended ("left
 * 1.2"). The status is the command's.
 */
#define _GNU_SOURCE
#include "defs.h"

#include <elf.h>
#include <errno.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES_MAX = 64, LINGER_S = 20 };

static struct process {
	pid_t                   pid; /* 0: ended */
	char                    place[32]; /* as PROCESS; "": its parent has not told of it, and it waits for that */
	unsigned                children;
	bool                    waits;
	struct user_regs_struct before; /* the failed call's */
} process[PROCESSES_MAX];

static size_t   processes;
static FILE    *report;
static const char *target;
static long     call_number, nth, error;
static long     seen;
static enum { NOT_YET, INSIDE, DONE } state;

static struct process *find(pid_t pid)
{
	for (size_t i = 0; i < processes; i++)
		if (process[i].pid == pid)
			return &process[i];
	if (processes == PROCESSES_MAX)
		exit(99);
	process[processes] = (struct process){ .pid = pid };
	return &process[processes++];
}

static void adopt(struct process *parent, struct process *child)
{
	if (snprintf(child->place, sizeof child->place, "%s.%u", parent->place, ++parent->children) >= (int)sizeof child->place)
		exit(99);
	if (child->waits)
		ptrace(PTRACE_SYSCALL, child->pid, NULL, NULL);
	child->waits = false;
}

static void report_exec(const struct process *p)
{
	char    link[32], path[4096];
	ssize_t n;

	(void)snprintf(link, sizeof link, "/proc/%d/exe", p->pid);
	n = readlink(link, path, sizeof path);
	fprintf(report, "exec %s %.*s\n", p->place, n < 0 ? 0 : (int)n, path);
}

/* --- registers --- */

#if defined(__x86_64__)
/* A call that every filter of ours allows, and that does nothing. */
static void replace_call(struct user_regs_struct *r)
{
	r->orig_rax = SYS_close;
	r->rdi      = ~0ull;
}

static void set_answer(struct user_regs_struct *r, long value)
{
	r->rax = (unsigned long)value;
}

static void put_number(pid_t pid)
{
	(void)pid; /* among the registers */
}
#elif defined(__aarch64__)
static void replace_call(struct user_regs_struct *r)
{
	r->regs[0] = ~0ull;
}

static void set_answer(struct user_regs_struct *r, long value)
{
	r->regs[0] = (unsigned long)value;
}

static void put_number(pid_t pid)
{
	int          number = SYS_close;
	struct iovec io     = { &number, sizeof number };

	ptrace(PTRACE_SETREGSET, pid, NT_ARM_SYSTEM_CALL, &io);
}
#else
#error "fail_at knows x86_64 and aarch64"
#endif

static void read_registers(pid_t pid, struct user_regs_struct *r)
{
	struct iovec io = { r, sizeof *r };

	ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io);
}

static void write_registers(pid_t pid, struct user_regs_struct *r)
{
	struct iovec io = { r, sizeof *r };

	ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &io);
}

/* --- one call --- */

static void enter(struct process *p)
{
	struct user_regs_struct other;

	state = INSIDE;
	read_registers(p->pid, &p->before);
	other = p->before;
	if (call_number == SYS_close)
		return;
	replace_call(&other);
	write_registers(p->pid, &other);
	put_number(p->pid);
}

static void leave(struct process *p)
{
	struct user_regs_struct after = p->before;

	state = DONE;
	set_answer(&after, -error);
	write_registers(p->pid, &after);
	fputs("failed\n", report);
}

static void at_call(struct process *p)
{
	struct __ptrace_syscall_info info;

	if (strcmp(p->place, target) != 0 || ptrace(PTRACE_GET_SYSCALL_INFO, p->pid, sizeof info, &info) <= 0)
		return;
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY && state == NOT_YET && (long)info.entry.nr == call_number && ++seen == nth)
		enter(p);
	else if (info.op == PTRACE_SYSCALL_INFO_EXIT && state == INSIDE)
		leave(p);
}

/* --- all processes --- */

/* The signal to go on with. */
static int attend(struct process *p, int status)
{
	unsigned long child;

	switch (status >> 16) {
	case 0:
		break;
	case PTRACE_EVENT_EXEC:
		if (p == process)
			seen = 0;
		report_exec(p);
		return 0;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		if (ptrace(PTRACE_GETEVENTMSG, p->pid, NULL, &child) == 0)
			adopt(p, find((pid_t)child));
		return 0;
	default:
		return 0;
	}
	if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
		at_call(p);
		return 0;
	}
	return WSTOPSIG(status);
}

static void on_alarm(int number)
{
	(void)number;
}

static int report_left(void)
{
	int n = 0;

	for (size_t i = 0; i < processes; i++)
		if (process[i].pid) {
			fprintf(report, "left %s\n", process[i].place);
			n++;
		}
	return n;
}

static int follow(pid_t command)
{
	int result = -1, status;

	for (;;) {
		struct process *p;
		pid_t           pid = waitpid(-1, &status, __WALL);
		int             number;

		if (pid < 0 && errno == EINTR) {
			report_left();
			return result;
		}
		if (pid < 0)
			return result;
		p = find(pid);
		if (!WIFSTOPPED(status)) {
			p->pid = 0;
			if (pid == command) {
				result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
				alarm(LINGER_S);
			}
			continue;
		}
		if (!*p->place) {
			p->waits = true;
			continue;
		}
		number = attend(p, status);
		ptrace(state == DONE ? PTRACE_CONT : PTRACE_SYSCALL, pid, NULL, (void *)(long)number);
	}
}

static pid_t start(char **argv)
{
	const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
			     PTRACE_O_EXITKILL;
	pid_t pid = fork();

	if (pid == 0) {
		raise(SIGSTOP);
		execv(argv[0], argv);
		_exit(98);
	}
	strcpy(find(pid)->place, "1");
	waitpid(pid, NULL, WUNTRACED);
	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options) < 0) {
		perror("ptrace");
		kill(pid, SIGKILL);
		exit(97);
	}
	kill(pid, SIGCONT);
	return pid;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_alarm }; /* no SA_RESTART: waitpid is to be interrupted */

	if (argc < 7 || !(report = fopen(argv[1], "we"))) {
		fputs("usage: fail_at REPORT PROCESS CALL NTH ERRNO COMMAND [ARGUMENT]...\n", stderr);
		return 96;
	}
	target      = argv[2];
	call_number = seccomp_syscall_resolve_name(argv[3]);
	nth         = atol(argv[4]);
	error       = atol(argv[5]);
	sigaction(SIGALRM, &action, NULL);
	return follow(start(argv + 6));
}
