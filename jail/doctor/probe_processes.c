#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"
#include "file.h"
#include "sys.h"
#include "surroundings.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#ifndef MFD_EXEC /* Linux 6.3; the C library does not know it yet */
#define MFD_EXEC 0x0010U
#endif
#ifndef P_PIDFD
#define P_PIDFD 3
#endif

bool probe_close_range(struct probe *p)
{
	scoped_fd low = open("/", O_PATH | O_CLOEXEC), high = -1;

	high = fcntl(low, F_DUPFD_CLOEXEC, 100);
	if (!check_sys_result(p, high, "duplicate a descriptor") || !check_sys_result(p, close_range((unsigned)high, (unsigned)high, 0), "close_range"))
		return false;
	return fcntl(high, F_GETFD) < 0 || report_missing(p, "close_range worked and closed nothing", "");
}

/* The smallest program there is: exit(77). */
struct tiny {
	ElfW(Ehdr) head;
	ElfW(Phdr) load;
	unsigned char code[16];
};

/* clang-format off */
#if defined(__x86_64__)
#define TINY_MACHINE EM_X86_64
#define TINY_CODE    { 0xbf, 77, 0, 0, 0, 0xb8, 60, 0, 0, 0, 0x0f, 0x05 } /* mov $77,%edi; mov $60,%eax; syscall */
#elif defined(__aarch64__)
#define TINY_MACHINE EM_AARCH64
#define TINY_CODE    { 0xa0, 0x09, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 } /* mov x0,#77; mov x8,#93; svc #0 */
#else
#error "write down exit(77) for this machine"
#endif
/* clang-format on */

#define TINY_AT 0x400000

static const struct tiny tiny = {
	.head = { .e_ident     = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
	          .e_type      = ET_EXEC,
	          .e_machine   = TINY_MACHINE,
	          .e_version   = EV_CURRENT,
	          .e_entry     = TINY_AT + offsetof(struct tiny, code),
	          .e_phoff     = offsetof(struct tiny, load),
	          .e_ehsize    = sizeof(ElfW(Ehdr)),
	          .e_phentsize = sizeof(ElfW(Phdr)),
	          .e_phnum     = 1 },
	.load = { .p_type   = PT_LOAD,
	          .p_flags  = PF_R | PF_X,
	          .p_vaddr  = TINY_AT,
	          .p_filesz = sizeof(struct tiny),
	          .p_memsz  = sizeof(struct tiny),
	          .p_align  = 0x10000 },
	.code = TINY_CODE,
};

static bool report_memfd_refused(struct probe *p, const char *what)
{
	long long value = read_number_file("/proc/sys/vm/memfd_noexec");
	char      cause[200];

	if (errno != EACCES || value <= 0)
		return check_sys_result(p, -1, "%s", what);
	p->finding.errnum = EACCES;
	p->finding.by     = REFUSER_SYSCTL;
	snprintf(cause, sizeof cause, "%s: EACCES (the sysctl vm.memfd_noexec is %lld in this pid namespace)", what, value);
	return report_missing(p, cause, "sysctl -w vm.memfd_noexec=1 (of the pid namespace, and of those above it)");
}

static int exec_memfd_in_child(int fd, int *status)
{
	char *const none[] = { NULL };
	pid_t       child  = fork();

	if (child == 0) {
		execveat(fd, "", none, none, AT_EMPTY_PATH);
		_exit(errno);
	}
	return child < 0 ? -1 : waitpid(child, status, 0);
}

bool probe_memfd_exec(struct probe *p)
{
	scoped_fd fd    = memfd_create("brig-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	int       seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE, status = 0;

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create("brig-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return report_memfd_refused(p, "memfd_create");
	if (!check_sys_result(p, file_write_all(fd, &tiny, sizeof tiny), "write to a memfd") ||
	    !check_sys_result(p, fcntl(fd, F_ADD_SEALS, seals), "seal a memfd"))
		return false;
	if (pwrite(fd, "x", 1, 0) >= 0)
		return report_missing(p, "a sealed memfd can still be written", "");
	if (!check_sys_result(p, exec_memfd_in_child(fd, &status), "fork"))
		return false;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return report_detail(p, "sealed and executed");
	if (WIFEXITED(status)) {
		errno = WEXITSTATUS(status);
		return report_memfd_refused(p, "execveat of a memfd");
	}
	return report_missing(p, "the program in a memfd was killed", "");
}

/* Signals and waits through pidfds; clones a child with CLONE_PIDFD. */
bool probe_pidfd(struct probe *p)
{
	int               born = -1;
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uintptr_t)&born, .exit_signal = SIGCHLD };
	siginfo_t         info = { 0 };
	scoped_fd         opened = -1;
	pid_t             child = clone3(&args, sizeof args);

	if (child < 0 && errno == ENOSYS) { /* a container's filter refuses clone3: use fork and pidfd_open() instead */
		child = fork();
		if (child > 0)
			born = pidfd_open(child, 0);
	}
	if (child == 0)
		wait_for_end_of_probe();
	scoped_fd pidfd = born;

	if (!check_sys_result(p, child, "clone3(CLONE_PIDFD)") || !check_sys_result(p, pidfd, "pidfd of a child"))
		return false;
	opened = pidfd_open(child, 0);
	return check_sys_result(p, opened, "pidfd_open") && check_sys_result(p, pidfd_send_signal(opened, SIGKILL, NULL, 0), "pidfd_send_signal") &&
	       check_sys_result(p, waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED), "waitid(P_PIDFD)") &&
	       (info.si_status == SIGKILL || report_missing(p, "pidfd_send_signal worked and killed nothing", "")) &&
	       report_detail(p, "open, send_signal, waitid, CLONE_PIDFD");
}
