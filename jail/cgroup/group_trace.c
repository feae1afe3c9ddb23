/* group_trace.c - what a leaf has kept of the cell before, as rows, each with what sets it back */
#define _GNU_SOURCE
#include "fd.h"
#include "group.h"
#include "group_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIDS_OF_ANY_RUN = 2 }; /* PID 1 and a program */

/* Of version 1: what a record tells, and what would end a run. A file that is not there counts for no run. */
/* clang-format off */
static const struct trace {
	unsigned    controller;
	bool        at_once;  /* as soon as the cell is gone, by the process that watched it: what it may write to was lent (group_lend()) */
	const char *file;
	const char *key;      /* NULL: the file is one number */
	const char *set_back; /* what is written first; "": its own value; NULL: nothing */
	int64_t     most;     /* what it may then be */
} traces[] = {
	{ GROUP_MEMORY,  true,  "memory.oom_control",             "oom_kill", NULL, 0 },
	{ GROUP_MEMORY,  true,  "memory.kmem.tcp.usage_in_bytes", NULL,       NULL, GROUP_CHARGED_MAX }, /* of sockets that are being closed */
	{ GROUP_MEMORY,  false, "memory.max_usage_in_bytes",      NULL,       "0",  GROUP_CHARGED_MAX }, /* becomes what is charged now */
	{ GROUP_PIDS,    true,  "pids.current",                   NULL,       NULL, 0 },                 /* one that has ended and is not reaped counts */
	{ GROUP_PIDS,    true,  "pids.events",                    "max",      NULL, 0 },
	{ GROUP_PIDS,    true,  "pids.peak",                      NULL,       NULL, PIDS_OF_ANY_RUN },   /* or a later run's would be larger than its own */
	{ GROUP_CPU,     false, "cpu.cfs_quota_us",               NULL,       "",   INT64_MAX },         /* begins a new period */
	{ GROUP_CPUACCT, true,  "cpuacct.usage",                  NULL,       "0",  0 },
};
/* clang-format on */

static bool read_text(int fd, char *text, size_t len)
{
	ssize_t n = pread(fd, text, len - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return n > 0;
}

static bool set_back(int fd, const char *value)
{
	char same[32];

	if (!*value && !read_text(fd, same, sizeof same))
		return false;
	value = *value ? value : same;
	return write(fd, value, strlen(value)) > 0;
}

static bool is_set_back(const struct group *g, const struct group_leaf *leaf, const struct trace *t)
{
	char      text[512];
	scoped_fd own = g->files ? -1 : openat(leaf->fd, t->file, (t->set_back ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	int       fd  = g->files ? group_kept_file(g->files, leaf, t->file) : own < 0 ? -errno : own;
	int64_t   value;

	if (fd < 0)
		return fd == -ENOENT;
	if ((t->set_back && !set_back(fd, t->set_back)) || !read_text(fd, text, sizeof text))
		return false;
	value = t->key ? group_key_value(text, t->key) : strtoll(text, NULL, 10);
	return value >= 0 && value <= t->most;
}

bool group_leaf_is_as_new(const struct group *g, const struct group_leaf *leaf, bool at_once)
{
	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (leaf->controllers & traces[i].controller && (traces[i].at_once || !at_once) && !is_set_back(g, leaf, &traces[i]))
			return false;
	return true;
}

void group_open_traces(struct group *g, const struct group_leaf *leaf)
{
	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (traces[i].at_once && leaf->controllers & traces[i].controller)
			(void)group_kept_file(g->files, leaf, traces[i].file);
}

bool group_is_renewable(const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].v2)
			return false;
	return g->n > 0;
}
