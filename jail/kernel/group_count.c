/* group_count.c - counters as rows: what the kernel has counted, and where it says so */
#define _GNU_SOURCE
#include "fd.h"
#include "file.h"
#include "group.h"
#include "group_path.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

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
#define AT(member) offsetof(struct group_usage, member)
	{ AT(memory_peak),  GROUP_MEMORY,  true,  "memory.peak",                     NULL,         false, 1 },    /* 5.19 */
	{ AT(memory_peak),  GROUP_MEMORY,  false, "memory.max_usage_in_bytes",       NULL,         false, 1 },
	{ AT(oom_kills),    GROUP_MEMORY,  true,  "memory.events",                   "oom_kill",   false, 1 },
	{ AT(oom_kills),    GROUP_MEMORY,  false, "memory.oom_control",              "oom_kill",   false, 1 },    /* 4.13 */
	{ AT(cpu_ns),       GROUP_CPUACCT, true,  "cpu.stat",                        "usage_usec", false, 1000 },
	{ AT(cpu_ns),       GROUP_CPUACCT, false, "cpuacct.usage",                   NULL,         false, 1 },
	{ AT(pids_peak),    GROUP_PIDS,    true,  "pids.peak",                       NULL,         false, 1 },    /* 6.1 */
	{ AT(pids_peak),    GROUP_PIDS,    false, "pids.peak",                       NULL,         false, 1 },
	{ AT(pids_refused), GROUP_PIDS,    true,  "pids.events",                     "max",        false, 1 },
	{ AT(pids_refused), GROUP_PIDS,    false, "pids.events",                     "max",        false, 1 },
	{ AT(io_read),      GROUP_IO,      true,  "io.stat",                         "rbytes=",    true,  1 },
	{ AT(io_write),     GROUP_IO,      true,  "io.stat",                         "wbytes=",    true,  1 },
};
/* clang-format on */

static int64_t read_counter(const struct group *g, const struct counter *c)
{
	const struct group_leaf *leaf = group_leaf_with(g, c->controller);
	char                     text[4096];
	int64_t                  value;

	if (!leaf || leaf->v2 != c->v2 || !group_read_file(leaf->fd, c->file, text, sizeof text))
		return -1;
	if (!c->key)
		value = strtoll(text, NULL, 10);
	else
		value = c->sum ? group_device_sum(text, c->key) : group_key_value(text, c->key);
	return value < 0 ? -1 : value * c->scale;
}

void group_read(const struct group *g, struct group_usage *ret)
{
	memset(ret, 0xff, sizeof *ret); /* every figure -1 */
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		int64_t value = read_counter(g, &counters[i]);

		if (value >= 0)
			*(int64_t *)((char *)ret + counters[i].offset) = value;
	}
}

int64_t group_cpu_ns(const struct group *g)
{
	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		int64_t value = counters[i].offset == AT(cpu_ns) ? read_counter(g, &counters[i]) : -1;

		if (value >= 0)
			return value;
	}
	return -1;
}
#undef AT

int64_t group_pids_now(const struct group *g)
{
	const struct group_leaf *leaf = group_leaf_with(g, GROUP_PIDS);
	char                     text[32];

	return leaf && group_read_file(leaf->fd, "pids.current", text, sizeof text) ? strtoll(text, NULL, 10) : -1;
}

bool group_has_no_memory(const struct group *g)
{
	const struct group_leaf *leaf = group_leaf_with(g, GROUP_MEMORY);
	char                     text[128];

	if (!leaf || !group_read_file(leaf->fd, "memory.oom_control", text, sizeof text))
		return false;
	return group_key_value(text, "under_oom") == 1 || group_key_value(text, "oom_kill_disable") != 1;
}

int group_watch_oom(const struct group *g, int *ret, struct err *e)
{
	const struct group_leaf *leaf  = group_leaf_with(g, GROUP_MEMORY);
	scoped_fd                event = -1, control = -1;
	char                     text[32];

	*ret = -1;
	if (!leaf || leaf->v2)
		return 0;
	event   = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	control = openat(leaf->fd, "memory.oom_control", O_RDONLY | O_CLOEXEC);
	snprintf(text, sizeof text, "%d %d", event, control);
	if (event < 0 || control < 0 || file_put(leaf->fd, "cgroup.event_control", text) < 0)
		return err_sys(e, "set-up step watch-memory");
	*ret = fd_take(&event);
	return 0;
}
