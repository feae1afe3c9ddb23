/*
 * init.c - PID 1 of a cell: it waits until the cell is to end.
 *
 * It uses no files, no arguments, no environment and no C library: what it
 * does not contain cannot be turned against the cell. It is not dumpable, has
 * no capabilities, runs under a filter of four calls, and has an id that the
 * program does not have, except where a plain user has one id for all. When it
 * exits, the kernel kills the rest of the cell. It forks nothing and reaps
 * nothing: the program is the child of the process that watches the cell, and
 * the kernel reaps orphans (child_cell.c ignores SIGCHLD, and an exec keeps
 * that).
 */
#include "protocol.h"
#include "raw_call.h"

#include <asm/errno.h>
#include <asm/poll.h>
#include <asm/signal.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall init_main\n");
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tbl init_main\n");
#endif

enum { EXIT_BROKEN = 70 };

static _Noreturn void exit_init(int status)
{
	for (;;)
		raw_call(__NR_exit_group, status, 0, 0, 0, 0);
}

/* Every step is needed: one that fails ends the cell before the program starts. */
static void exit_if_failed(long r)
{
	if (r < 0)
		exit_init(EXIT_BROKEN);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   none[2] = { { 0 } };

	exit_if_failed(raw_call(__NR_capset, (long)&head, (long)none, 0, 0, 0));
}

/*
 * The signal is armed after the last change of credentials, which clears it.
 * A parent that died before that is noticed by the hang-up of the socket: not by
 * getppid(), which returns 0 for every parent outside the pid namespace.
 */
static void die_with_parent(void)
{
	struct pollfd parent = { .fd = INIT_FD_LIFE };
	struct {
		long sec, nsec;
	} now = { 0, 0 };

	exit_if_failed(raw_call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	exit_if_failed(raw_call(__NR_ppoll, (long)&parent, 1, (long)&now, 0, 0));
	if (parent.revents & POLLHUP)
		exit_init(EXIT_BROKEN);
}

static void install_init_filter(void)
{
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	static const struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(read),
		ALLOW(write),
		ALLOW(exit_group),
		ALLOW(restart_syscall),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof rows / sizeof rows[0], (struct sock_filter *)rows };

	exit_if_failed(raw_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	exit_if_failed(raw_call(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0, 0));
}

static void wait_for_socket_end(void)
{
	char byte;

	while (raw_call(__NR_read, INIT_FD_LIFE, (long)&byte, 1, 0, 0) == -EINTR)
		;
}

_Noreturn void init_main(void);
_Noreturn void init_main(void)
{
	exit_if_failed(raw_call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
	exit_if_failed(raw_call(__NR_prctl, PR_SET_NAME, (long)"brig-init", 0, 0, 0));
	drop_capabilities();
	die_with_parent();
	install_init_filter();
	exit_if_failed(raw_call(__NR_write, INIT_FD_LIFE, (long)"", 1, 0, 0));
	wait_for_socket_end();
	exit_init(0);
}
