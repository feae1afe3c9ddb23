/*
 * init.c - PID 1 of a cell: reap, report, and end with the program.
 *
 * It knows no files, no arguments, no environment and no C library: what it
 * does not contain cannot be turned against the cell. It runs not dumpable,
 * without capabilities, under a filter of seven calls, and as an id that the
 * program does not have, but for a plain user who has one id for all. When it
 * exits, the kernel kills the rest of the cell.
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
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall run\n");
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x0, sp\n\tbl run\n");
#endif

/* The main program of a cell is always the first process that PID 1 left behind. */
enum { PROGRAM_PID = 2, EXIT_BROKEN = 70 };

struct statfs_kernel {
	long type, bsize;
	long blocks, bfree, bavail, files, ffree;
	int  fsid[2];
	long namelen, frsize, flags, spare[4];
};

static _Noreturn void leave(int status)
{
	for (;;)
		call(__NR_exit_group, status, 0, 0, 0, 0);
}

/* Every step is needed: one that fails ends the cell before the program starts. */
static void need(long r)
{
	if (r < 0)
		leave(EXIT_BROKEN);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct head    = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   none[2] = { { 0 } };

	need(call(__NR_capset, (long)&head, (long)none, 0, 0, 0));
}

/*
 * The signal is armed after the last change of credentials, which clears it.
 * A launcher that died before that is seen by its end of the socket: getppid()
 * cannot tell, a parent outside the pid namespace is always 0.
 */
static void die_with_launcher(void)
{
	struct pollfd launcher = { .fd = INIT_FD_STATUS };
	struct {
		long sec, nsec;
	} now = { 0, 0 };

	need(call(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0));
	need(call(__NR_ppoll, (long)&launcher, 1, (long)&now, 0, 0));
	if (launcher.revents & POLLHUP)
		leave(EXIT_BROKEN);
}

static void filter_self(void)
{
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	static const struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(wait4),
		ALLOW(read),
		ALLOW(write),
		ALLOW(close),
		ALLOW(statfs),
		ALLOW(exit_group),
		ALLOW(restart_syscall),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof rows / sizeof rows[0], (struct sock_filter *)rows };

	need(call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	need(call(__NR_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program, 0, 0));
}

static int reap_until_program_ends(void)
{
	for (;;) {
		int  status = 0;
		long pid    = call(__NR_wait4, -1, (long)&status, 0, 0, 0);

		if (pid == PROGRAM_PID)
			return status;
		if (pid < 0 && pid != -EINTR)
			leave(EXIT_BROKEN);
	}
}

/*
 * A program that a zygote forked is no child of ours: its parent reaps it, and the launcher says with which status.
 * Orphans that come to us are then reaped by the kernel (child_cell.c ignores SIGCHLD for us, which outlasts an exec).
 */
static int hear_program_end(void)
{
	int  status = 0;
	long n;

	do
		n = call(__NR_read, INIT_FD_STATUS, (long)&status, sizeof status, 0, 0);
	while (n == -EINTR);
	if (n != sizeof status)
		leave(EXIT_BROKEN);
	return status;
}

static void look_at_mounts(struct init_report *report)
{
	static const char *const paths[INIT_MOUNTS] = { "/tmp", "/dev/shm", "/workspace" };

	for (int i = 0; i < INIT_MOUNTS; i++) {
		struct statfs_kernel fs;

		if (call(__NR_statfs, (long)paths[i], (long)&fs, 0, 0, 0) < 0)
			return;
		report->free_bytes[i]  = (uint64_t)fs.bfree * (uint64_t)fs.bsize;
		report->free_inodes[i] = (uint64_t)fs.ffree;
		report->mounts_read++;
	}
}

_Noreturn void run(const long *stack);
_Noreturn void run(const long *stack)
{
	struct init_report report;
	volatile char     *p = (volatile char *)&report;
	bool               reaps = stack[0] < INIT_WORDS_WARM;

	for (size_t i = 0; i < sizeof report; i++) /* no memset here */
		p[i] = 0;
	need(call(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0));
	need(call(__NR_prctl, PR_SET_NAME, (long)"brig-init", 0, 0, 0));
	drop_capabilities();
	die_with_launcher();
	filter_self();
	need(call(__NR_write, INIT_FD_READY, (long)"", 1, 0, 0));
	call(__NR_close, INIT_FD_READY, 0, 0, 0, 0);
	report.status = reaps ? reap_until_program_ends() : hear_program_end();
	look_at_mounts(&report);
	call(__NR_write, INIT_FD_STATUS, (long)&report, sizeof report, 0, 0);
	leave(0);
}
