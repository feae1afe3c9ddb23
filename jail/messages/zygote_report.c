#define _GNU_SOURCE
#include "zygote_report.h"

#include "fd.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const struct zygote_report zygote_report_none = { .shared_bytes = ZYGOTE_UNKNOWN, .own_bytes = ZYGOTE_UNKNOWN, .forks = ZYGOTE_UNKNOWN,
						  .fork_shared_bytes = ZYGOTE_UNKNOWN, .fork_own_bytes = ZYGOTE_UNKNOWN };

/* --- the file --- */

int zygote_report_open(void)
{
	scoped_fd fd = memfd_create("zygote-report", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, sizeof(struct zygote_report)) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -1;
	zygote_report_write(fd, &zygote_report_none);
	return fd_take(&fd);
}

void zygote_report_read(int fd, struct zygote_report *ret)
{
	if (fd < 0 || pread(fd, ret, sizeof *ret, 0) != sizeof *ret)
		*ret = zygote_report_none;
}

/* If this fails, the figures stay as they are. */
void zygote_report_write(int fd, const struct zygote_report *report)
{
	if (fd >= 0)
		(void)!pwrite(fd, report, sizeof *report, 0);
}

/* --- memory --- */

/* "Pss:    4341 kB", in bytes. */
static bool parse_smaps_bytes(const char *text, const char *key, uint64_t *ret)
{
	const char        *line = strstr(text, key);
	unsigned long long kib;

	if (!line || sscanf(line + strlen(key), " %llu kB", &kib) != 1)
		return false;
	*ret = kib * 1024;
	return true;
}

static bool measure_process_memory(pid_t pid, uint64_t *shared, uint64_t *own)
{
	char      path[48], text[2048];
	uint64_t  pss, clean, dirty;
	scoped_fd fd = -1;
	ssize_t   n;

	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n  = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	if (!parse_smaps_bytes(text, "\nPss:", &pss) || !parse_smaps_bytes(text, "\nPrivate_Clean:", &clean) ||
	    !parse_smaps_bytes(text, "\nPrivate_Dirty:", &dirty))
		return false;
	*shared = pss;
	*own    = clean + dirty;
	return true;
}

void zygote_report_measure_processes(struct zygote_report *report, pid_t pid, int pidfd, const struct waiting_forks *waiting)
{
	struct zygote_report r         = *report;
	struct pollfd        gone      = { .fd = pidfd, .events = POLLIN };
	struct pollfd        fork_gone = { .fd = waiting->pidfd, .events = POLLIN };

	if (!measure_process_memory(pid, &r.shared_bytes, &r.own_bytes))
		r.shared_bytes = r.own_bytes = ZYGOTE_UNKNOWN;
	r.forks = waiting->n;
	if (waiting->n == 0 || !measure_process_memory(waiting->pid, &r.fork_shared_bytes, &r.fork_own_bytes) || poll(&fork_gone, 1, 0) != 0)
		r.fork_shared_bytes = r.fork_own_bytes = ZYGOTE_UNKNOWN;
	if (poll(&gone, 1, 0) == 0)
		*report = r;
}
