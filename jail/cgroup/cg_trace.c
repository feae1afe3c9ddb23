/* cg_trace.c - counters in which an ended cell leaves traces, as rows, each with the value that resets it */
#define _GNU_SOURCE
#include "fd.h"
#include "cg.h"
#include "cg_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIDS_OF_ANY_RUN = 2 }; /* PID 1 and a program */

/* v1 only: what a record reports, and what would end a run. A file that the kernel does not have leaves no trace. */
/* clang-format off */
static const struct trace {
	unsigned    controller;
	bool        at_once;  /* cg_reset_counters() does it, too, when the cell is gone; it can write only to what was lent */
	const char *file;
	const char *key;      /* NULL: the file is one number */
	const char *reset; /* what is written first; "": its own value; NULL: nothing */
	int64_t     most;     /* the largest value that it may then have */
} traces[] = {
	{ CG_MEMORY,  true,  "memory.oom_control",             "oom_kill", NULL, 0 },
	{ CG_MEMORY,  true,  "memory.kmem.tcp.usage_in_bytes", NULL,       NULL, CG_CHARGED_MAX }, /* sockets that are still being closed */
	{ CG_MEMORY,  false, "memory.max_usage_in_bytes",      NULL,       "0",  CG_CHARGED_MAX }, /* becomes what is charged now */
	{ CG_PIDS,    true,  "pids.current",                   NULL,       NULL, 0 },                 /* counts zombies, too */
	{ CG_PIDS,    true,  "pids.events",                    "max",      NULL, 0 },
	{ CG_PIDS,    true,  "pids.peak",                      NULL,       NULL, PIDS_OF_ANY_RUN },   /* cannot be reset; the next run would report it */
	{ CG_CPU,     false, "cpu.cfs_quota_us",               NULL,       "",   INT64_MAX },         /* the write begins a new period */
	{ CG_CPUACCT, true,  "cpuacct.usage",                  NULL,       "0",  0 },
};
/* clang-format on */

static bool reread_counter_text(int fd, char *text, size_t len)
{
	ssize_t n = pread(fd, text, len - 1, 0);

	text[n < 0 ? 0 : n] = 0;
	return n > 0;
}

static bool write_reset_value(int fd, const char *value)
{
	char same[32];

	if (!*value && !reread_counter_text(fd, same, sizeof same))
		return false;
	value = *value ? value : same;
	return write(fd, value, strlen(value)) > 0;
}

static bool reset_counter_by_trace(const struct cg *g, const struct cg_leaf *leaf, const struct trace *t)
{
	char      text[512];
	scoped_fd own = g->files ? -1 : openat(leaf->fd, t->file, (t->reset ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	int       fd  = g->files ? cg_get_kept_file(g->files, leaf, t->file) : own < 0 ? -errno : own;
	int64_t   value;

	if (fd < 0)
		return fd == -ENOENT;
	if ((t->reset && !write_reset_value(fd, t->reset)) || !reread_counter_text(fd, text, sizeof text))
		return false;
	value = t->key ? cg_find_key_value(text, t->key) : strtoll(text, NULL, 10);
	return value >= 0 && value <= t->most;
}

bool cg_leaf_reset_counters(const struct cg *g, const struct cg_leaf *leaf, bool at_once)
{
	if (leaf->v2)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (leaf->controllers & traces[i].controller && (traces[i].at_once || !at_once) && !reset_counter_by_trace(g, leaf, &traces[i]))
			return false;
	return true;
}

void cg_open_counter_files(struct cg *g, const struct cg_leaf *leaf)
{
	for (size_t i = 0; i < ARRAY_LEN(traces); i++)
		if (traces[i].at_once && leaf->controllers & traces[i].controller)
			(void)cg_get_kept_file(g->files, leaf, traces[i].file);
}

bool cg_is_renewable(const struct cg *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].v2)
			return false;
	return g->n > 0;
}
