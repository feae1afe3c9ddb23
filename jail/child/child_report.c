/* child_report.c - reports of a process that is being set up, to the supervisor or launcher */
#include "child.h"
#include "packet.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int64_t child_cpu_ns(pid_t pid)
{
	enum { CPU_OF_PROCESS = 2 }; /* in the clock id, as in clock_getcpuclockid(), which makes a system call more */
	struct timespec t;

	if (syscall(SYS_clock_gettime, (clockid_t)(~(unsigned)pid << 3 | CPU_OF_PROCESS), &t) < 0)
		return 0;
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int child_send_report(const struct child_ctx *c, enum child_message message, const int *fds, size_t n)
{
	struct child_report report;

	memset(&report, 0, sizeof report); /* padding too: it leaves this process */
	report.message       = message;
	report.detail        = message == CHILD_EXECS ? CHILD_DETAIL_EXECS : 0;
	report.cpu_ns = child_cpu_ns(0) + child_cpu_ns(1) - c->cpu_before_ns;
	report.cpu_before_ns = c->cpu_before_ns;
	return packet_send(c->report_fd, &report, sizeof report, fds, n);
}

void child_report_failure_and_exit(const struct child_ctx *c, enum child_table table, unsigned step, int errnum)
{
	struct child_report report;

	memset(&report, 0, sizeof report);
	report.message = CHILD_FAILED;
	report.table  = table;
	report.step   = step;
	report.detail = c->detail;
	report.errnum = errnum;
	(void)!write(c->report_fd, &report, sizeof report); /* not sendmsg(): the program's filter may be on */
	_exit(CHILD_EXIT_SETUP);
}
