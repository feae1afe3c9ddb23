/* cg_count.c - counters as rows, each with the kernel file that has it; and the watch for a lack of memory */
#define _GNU_SOURCE
#include "fd.h"
#include "file.h"
#include "cg.h"
#include "cg_path.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* clang-format off */
static const struct counter {
	size_t      offset;
	unsigned    controller;
	bool        v2;
	const char *file;
	const char *key;     /* NULL: the file is one number */
	bool        sum;     /* over devices */
	int64_t     scale;
} counters[] = {
#define AT(member) offsetof(struct cg_usage, member)
	{ AT(memory_peak),  CG_MEMORY,  true,  "memory.peak",                     NULL,         false, 1 },    /* 5.19 */
	{ AT(memory_peak),  CG_MEMORY,  false, "memory.max_usage_in_bytes",       NULL,         false, 1 },
	{ AT(oom_kills),    CG_MEMORY,  true,  "memory.events",                   "oom_kill",   false, 1 },
	{ AT(oom_kills),    CG_MEMORY,  false, "memory.oom_control",              "oom_kill",   false, 1 },    /* 4.13 */
	{ AT(cpu_ns),       CG_CPUACCT, true,  "cpu.stat",                        "usage_usec", false, 1000 },
	{ AT(cpu_ns),       CG_CPUACCT, false, "cpuacct.usage",                   NULL,         false, 1 },
	{ AT(pids_peak),    CG_PIDS,    true,  "pids.peak",                       NULL,         false, 1 },    /* 6.1 */
	{ AT(pids_peak),    CG_PIDS,    false, "pids.peak",                       NULL,         false, 1 },
	{ AT(pids_refused), CG_PIDS,    true,  "pids.events",                     "max",        false, 1 },
	{ AT(pids_refused), CG_PIDS,    false, "pids.events",                     "max",        false, 1 },
	{ AT(io_read),      CG_IO,      true,  "io.stat",                         "rbytes=",    true,  1 },
	{ AT(io_write),     CG_IO,      true,  "io.stat",                         "wbytes=",    true,  1 },
};
/* clang-format on */

static int64_t read_leaf_number(const struct cg_leaf *leaf, const char *file)
{
	char text[32];

	return cg_read_file(leaf->fd, file, text, sizeof text) ? strtoll(text, NULL, 10) : -1;
}

static int64_t read_cgroup_counter(const struct cg *g, const struct counter *c)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, c->controller);
	char                  text[4096];
	int64_t               value;

	if (!leaf || leaf->v2 != c->v2 || !cg_read_counter_text(g, leaf, c->file, text, sizeof text))
		return -1;
	if (!c->key)
		value = strtoll(text, NULL, 10);
	else
		value = c->sum ? cg_device_sum(text, c->key) : cg_find_key_value(text, c->key);
	return value < 0 ? -1 : value * c->scale;
}

void cg_read_usage(const struct cg *g, struct cg_usage *ret)
{
	memset(ret, 0xff, sizeof *ret); /* every figure -1 */
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		int64_t value = read_cgroup_counter(g, &counters[i]);

		if (value >= 0)
			*(int64_t *)((char *)ret + counters[i].offset) = value;
	}
}

int64_t cg_read_cpu_ns(const struct cg *g)
{
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		int64_t value = counters[i].offset == AT(cpu_ns) ? read_cgroup_counter(g, &counters[i]) : -1;

		if (value >= 0)
			return value;
	}
	return -1;
}
#undef AT

int64_t cg_read_pids_current(const struct cg *g)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_PIDS);
	char                  text[32];

	return leaf && cg_read_counter_text(g, leaf, "pids.current", text, sizeof text) ? strtoll(text, NULL, 10) : -1;
}

/* --- no memory --- */

enum { USED_UP = 1 }; /* the helper's exit status when the memory is really in use */

/* Processes of the leaf wait for memory. Also true when the kernel's OOM killer is on: in which group is not known. */
static bool is_leaf_under_oom(const struct cg_leaf *leaf, int event)
{
	uint64_t count;
	char     text[128];

	if (read(event, &count, sizeof count) != sizeof count || !cg_read_file(leaf->fd, "memory.oom_control", text, sizeof text))
		return false;
	return cg_find_key_value(text, "under_oom") == 1 || cg_find_key_value(text, "oom_kill_disable") != 1;
}

/*
 * More than half of the way from the mark to the limit. Nearer to the mark, the kernel may still be reclaiming, or
 * the counter may lack what one CPU has not yet added to it.
 */
static bool is_memory_past_high_mark(const struct cg_leaf *leaf)
{
	int64_t mark = read_leaf_number(leaf, "memory.high"), limit = read_leaf_number(leaf, "memory.max"), now = read_leaf_number(leaf, "memory.current");

	return mark > 0 && limit > mark && now >= mark + (limit - mark) / 2;
}

/*
 * The page cache counts as well: a program that reads a large file is at the mark all the time, though it could have
 * more memory. Writing the same value to memory.high again makes the kernel reclaim all it can, with the reserves of
 * the CPUs; the write returns when usage is below the mark or no more can be reclaimed. What is still charged then is
 * really in use. The program can make this write take long, so a process of its own does it.
 */
static _Noreturn void reclaim_and_exit_with_verdict(const struct cg_leaf *leaf, int mark_fd)
{
	int  keep[] = { leaf->fd, mark_fd };
	char mark[32];
	bool is_done = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && fd_close_all_but(keep, ARRAY_LEN(keep)) == 0 &&
		       cg_read_file(leaf->fd, "memory.high", mark, sizeof mark) && write(mark_fd, mark, strlen(mark)) > 0;

	_exit(is_done && is_memory_past_high_mark(leaf) ? USED_UP : 0);
}

static void start_reclaim_helper(const struct cg_leaf *leaf, struct cg_oom *oom)
{
	char  text[512];
	pid_t pid;

	if (pread(oom->fd, text, sizeof text, 0) < 0 || !is_memory_past_high_mark(leaf))
		return;
	pid = fork();
	if (pid == 0)
		reclaim_and_exit_with_verdict(leaf, oom->mark_fd);
	oom->helper_fd = pid < 0 ? -1 : pidfd_open(pid, 0);
	oom->helper    = oom->helper_fd < 0 ? 0 : pid;
}

bool cg_reap_oom_helper(struct cg_oom *oom)
{
	siginfo_t end        = { 0 };
	bool      is_reaped  = waitid(P_PIDFD, (id_t)oom->helper_fd, &end, WEXITED) == 0;
	bool      is_used_up = is_reaped && end.si_code == CLD_EXITED && end.si_status == USED_UP;

	fd_closep(&oom->helper_fd);
	oom->helper = 0;
	return is_used_up;
}

bool cg_take_oom_event(const struct cg *g, struct cg_oom *oom)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);

	if (!leaf)
		return false;
	if (!leaf->v2)
		return is_leaf_under_oom(leaf, oom->fd);
	start_reclaim_helper(leaf, oom);
	return false;
}

void cg_rearm_oom_watch(const struct cg_oom *oom)
{
	if (oom->fd >= 0 && oom->mark_fd < 0)
		(void)!eventfd_write(oom->fd, 1);
}

static int watch_oom_v1(const struct cg_leaf *leaf, struct cg_oom *ret)
{
	scoped_fd event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), control = openat(leaf->fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	char      text[32];

	snprintf(text, sizeof text, "%d %d", event, control);
	if (event < 0 || control < 0 || file_write_existing(leaf->fd, "cgroup.event_control", text) < 0)
		return -1;
	ret->fd     = fd_take(&event);
	ret->events = POLLIN;
	return 0;
}

static int watch_oom_v2(const struct cg_leaf *leaf, struct cg_oom *ret)
{
	ret->fd      = openat(leaf->fd, "memory.events", O_RDONLY | O_CLOEXEC);
	ret->mark_fd = openat(leaf->fd, "memory.high", O_WRONLY | O_CLOEXEC);
	ret->events  = POLLPRI; /* it can be read at any time */
	return ret->fd < 0 || ret->mark_fd < 0 ? -1 : 0;
}

int cg_watch_oom(const struct cg *g, struct cg_oom *ret, struct err *e)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);

	*ret = CG_OOM_NONE;
	if (leaf && (leaf->v2 ? watch_oom_v2(leaf, ret) : watch_oom_v1(leaf, ret)) < 0)
		return err_sys(e, "set-up step watch-memory");
	return 0;
}

void cg_oom_close(struct cg_oom *oom)
{
	if (oom->helper_fd >= 0) {
		pidfd_send_signal(oom->helper_fd, SIGKILL, NULL, 0); /* not waited for: its write to memory.high may take long */
		fd_closep(&oom->helper_fd);
		oom->helper = 0;
	}
	fd_closep(&oom->fd);
	fd_closep(&oom->mark_fd);
}
