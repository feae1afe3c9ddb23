#define _GNU_SOURCE
#include "group.h"

#include "fd.h"
#include "file.h"
#include "group_path.h"
#include "group_trees.h"
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- reading --- */

/* A kernel file of at most a page or so, NUL-terminated; "" and false when it is not there. */
static bool read_text(int dir, const char *name, char *buf, size_t len)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t   n  = fd < 0 ? -1 : read(fd, buf, len - 1);

	buf[n < 0 ? 0 : n] = 0;
	return n >= 0;
}

static const struct group_leaf *leaf_with(const struct group *g, unsigned controller)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].controllers & controller)
			return &g->leaf[i];
	return NULL;
}

/* --- limits --- */

enum value { VALUE_MEMORY, VALUE_PIDS, VALUE_CPU_MAX, VALUE_QUOTA, VALUE_PERIOD, VALUE_ZERO, VALUE_ONE };
enum { CPU_PERIOD_US = 100000 };

/* clang-format off */
static const struct knob {
	unsigned    controller;
	bool        v2;
	const char *file;
	enum value  value;
	enum layer  layer;
	bool        optional; /* kernels without swap accounting do not have the file */
} knobs[] = {
	{ GROUP_MEMORY,  true,  "memory.max",                  VALUE_MEMORY,  LAYER_MEMORY, false },
	{ GROUP_MEMORY,  true,  "memory.swap.max",             VALUE_ZERO,    LAYER_MEMORY, true },
	{ GROUP_MEMORY,  true,  "memory.oom.group",            VALUE_ONE,     LAYER_MEMORY, false }, /* half a process tree is worse than none */
	{ GROUP_MEMORY,  false, "memory.limit_in_bytes",       VALUE_MEMORY,  LAYER_MEMORY, false },
	{ GROUP_MEMORY,  false, "memory.memsw.limit_in_bytes", VALUE_MEMORY,  LAYER_MEMORY, true },  /* after the one above: it may not be lower */
	{ GROUP_MEMORY,  false, "memory.kmem.tcp.limit_in_bytes", VALUE_MEMORY, LAYER_MEMORY, true }, /* v1 counts buffers of sockets apart, and only when told to */
	{ GROUP_PIDS,    true,  "pids.max",                    VALUE_PIDS,    LAYER_PIDS,   false },
	{ GROUP_PIDS,    false, "pids.max",                    VALUE_PIDS,    LAYER_PIDS,   false },
	{ GROUP_CPU,     true,  "cpu.max",                     VALUE_CPU_MAX, LAYER_CPU,    false },
	{ GROUP_CPU,     false, "cpu.cfs_period_us",           VALUE_PERIOD,  LAYER_CPU,    false },
	{ GROUP_CPU,     false, "cpu.cfs_quota_us",            VALUE_QUOTA,   LAYER_CPU,    false },
};
/* clang-format on */

static uint64_t knob_text(const struct knob *k, const struct limits *l, char *buf, size_t len)
{
	uint64_t value = 0;

	switch (k->value) {
	case VALUE_MEMORY:
		value = l->memory_bytes;
		break;
	case VALUE_PIDS:
		value = l->pids + 1; /* PID 1 of the cell is ours */
		break;
	case VALUE_CPU_MAX:
	case VALUE_QUOTA:
		value = l->cpus * CPU_PERIOD_US / 1000;
		break;
	case VALUE_PERIOD:
		value = CPU_PERIOD_US;
		break;
	case VALUE_ONE:
		value = 1;
		break;
	case VALUE_ZERO:
		break;
	}
	snprintf(buf, len, k->value == VALUE_CPU_MAX ? "%" PRIu64 " %d" : "%" PRIu64, value, CPU_PERIOD_US);
	return value;
}

/* What the kernel kept: it rounds memory down to a page, and nothing else. */
static bool kept(const char *text, uint64_t asked)
{
	uint64_t got = strtoull(text, NULL, 10);

	return got <= asked && asked - got < 64 * KIB && (got || !asked);
}

static int turn_knob(const struct group_leaf *leaf, const struct knob *k, const struct limits *l, struct err *e)
{
	char      text[64], back[64];
	uint64_t  asked = knob_text(k, l, text, sizeof text);
	scoped_fd fd    = openat(leaf->fd, k->file, O_RDWR | O_CLOEXEC);
	ssize_t   n;

	if (fd < 0 && k->optional && errno == ENOENT)
		return 0;
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || (n = pread(fd, back, sizeof back - 1, 0)) < 0)
		return err_sys(e, "set-up step limits: %s = %s", k->file, text);
	back[n] = 0;
	if (!kept(back, asked))
		return err_set(e, ERR_SETUP, "set-up step limits: %s = %s: the kernel kept %.20s", k->file, text, back);
	return 0;
}

static void note_missing(struct group *g, enum layer layer, const char *controller)
{
	if (!g->missing)
		snprintf(g->why, sizeof g->why, "no usable %s controller in the control groups", controller);
	g->missing |= 1ull << layer;
}

static void note_controllers(struct group *g)
{
	static const struct {
		unsigned    controller;
		enum layer  layer;
		const char *name;
	} rows[] = {
		{ GROUP_MEMORY, LAYER_MEMORY, "memory" },
		{ GROUP_PIDS, LAYER_PIDS, "pids" },
		{ GROUP_CPU, LAYER_CPU, "cpu" },
		{ GROUP_CPUACCT, LAYER_CPU_TIME, "cpuacct" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (leaf_with(g, rows[i].controller))
			g->layers |= 1ull << rows[i].layer;
		else
			note_missing(g, rows[i].layer, rows[i].name);
	}
}

int group_limit(struct group *g, const struct limits *limits, struct err *e)
{
	note_controllers(g);
	for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
		const struct group_leaf *leaf = leaf_with(g, knobs[i].controller);

		if (leaf && leaf->v2 == knobs[i].v2 && turn_knob(leaf, &knobs[i], limits, e) < 0)
			return -1;
	}
	return 0;
}

/* --- counters --- */

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
	const struct group_leaf *leaf = leaf_with(g, c->controller);
	char                     text[4096];
	int64_t                  value;

	if (!leaf || leaf->v2 != c->v2 || !read_text(leaf->fd, c->file, text, sizeof text))
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

int group_watch_oom(const struct group *g, int *ret, struct err *e)
{
	const struct group_leaf *leaf  = leaf_with(g, GROUP_MEMORY);
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

/* --- coming and going --- */

int group_clone_fd(const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].v2)
			return g->leaf[i].fd;
	return -1;
}

int group_open_tasks(const struct group *g, int fds[GROUP_TREES_MAX], struct err *e)
{
	int n = 0;

	for (size_t i = 0; i < g->n; i++) {
		if (g->leaf[i].v2)
			continue;
		fds[n] = openat(g->leaf[i].fd, "tasks", O_WRONLY | O_CLOEXEC);
		if (fds[n] < 0) {
			err_sys(e, "set-up step join-groups: tasks");
			while (n)
				close(fds[--n]);
			return -1;
		}
		n++;
	}
	return n;
}

void group_kill(const struct group *g)
{
	int fd = group_clone_fd(g);

	if (fd >= 0)
		(void)!file_put(fd, "cgroup.kill", "1");
}

static bool is_listed(int dir, pid_t pid)
{
	char text[4096], *at = text;

	read_text(dir, "cgroup.procs", text, sizeof text);
	while (*at) {
		if (strtol(at, &at, 10) == pid)
			return true;
		at += *at == '\n';
	}
	return false;
}

/* The pid is pinned first and looked up again: it may be somebody else's by now. */
static void kill_member(int dir, pid_t pid)
{
	scoped_fd pin = pidfd_open(pid, 0);

	if (pin >= 0 && is_listed(dir, pid))
		pidfd_send_signal(pin, SIGKILL, NULL, 0);
}

static void kill_members(int dir)
{
	char text[4096], *at = text;

	if (file_put(dir, "cgroup.kill", "1") == 0)
		return;
	read_text(dir, "cgroup.procs", text, sizeof text);
	while (*at) {
		long pid = strtol(at, &at, 10);

		if (pid > 0)
			kill_member(dir, (pid_t)pid);
		at += *at == '\n';
	}
}

/* Leaves empty a moment after their last process is reaped: try, at first at once, for two seconds. */
static int remove_leaf(int base, const char *name)
{
	for (int ms = 0; ms < 2000; ms++) {
		if (unlinkat(base, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -1;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	errno = EBUSY;
	return -1;
}

/* Of a launcher that crashed: the kernel has let go of its lock. */
static enum group_answer clear_leftover(int base, const char *name)
{
	scoped_fd dir = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? GROUP_MADE : GROUP_FAILED;
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? GROUP_TAKEN : GROUP_FAILED;
	kill_members(dir);
	return remove_leaf(base, name) < 0 ? GROUP_FAILED : GROUP_MADE;
}

enum { LEAF_MODE = 0700 }; /* whoever may open it may lock it, and would keep us out */

static enum group_answer make_leaf(struct group_leaf *leaf, const char *name)
{
	enum group_answer answer = GROUP_MADE;

	if (mkdirat(leaf->base_fd, name, LEAF_MODE) < 0) {
		answer = errno == EEXIST ? clear_leftover(leaf->base_fd, name) : GROUP_FAILED;
		if (answer == GROUP_MADE && mkdirat(leaf->base_fd, name, LEAF_MODE) < 0)
			answer = errno == EEXIST ? GROUP_TAKEN : GROUP_FAILED;
	}
	if (answer != GROUP_MADE)
		return answer;
	leaf->made = true;
	leaf->fd   = openat(leaf->base_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (leaf->fd < 0)
		return GROUP_FAILED;
	return flock(leaf->fd, LOCK_EX | LOCK_NB) < 0 ? GROUP_TAKEN : GROUP_MADE;
}

static enum group_answer make_leaves(struct group *g, const struct group_trees *trees)
{
	for (size_t i = 0; i < trees->n; i++) {
		struct group_leaf *leaf = &g->leaf[g->n];
		enum group_answer  answer;

		*leaf = (struct group_leaf){ .base_fd = -1, .fd = -1, .v2 = trees->tree[i].v2 };
		if (group_trees_open_base(trees, i, leaf) < 0)
			continue;
		g->n++;
		answer = make_leaf(leaf, g->name);
		if (answer == GROUP_FAILED && errno == ENOENT) { /* another launcher just removed the empty base */
			fd_closep(&leaf->base_fd);
			if (group_trees_open_base(trees, i, leaf) == 0)
				answer = make_leaf(leaf, g->name);
		}
		if (answer != GROUP_MADE)
			return answer;
	}
	return GROUP_MADE;
}

enum group_answer group_open(struct group *ret, const char *cache_dir, uint32_t slot, struct err *e)
{
	struct group       g = { 0 };
	struct group_trees trees;
	enum group_answer  answer;
	struct err         ignored;

	snprintf(g.name, sizeof g.name, "cell-%u", slot);
	group_trees_find(&trees, cache_dir);
	answer = make_leaves(&g, &trees);
	if (answer == GROUP_FAILED)
		err_sys(e, "set-up step make-groups: %s", g.name);
	if (answer != GROUP_MADE) {
		(void)!group_close(&g, &ignored);
		return answer;
	}
	*ret = g;
	return GROUP_MADE;
}

int group_close(struct group *g, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < g->n; i++) {
		struct group_leaf *leaf = &g->leaf[i];

		if (leaf->made && remove_leaf(leaf->base_fd, g->name) < 0)
			r = err_sys(e, "control group %s cannot be removed", g->name);
		if (leaf->made && leaf->borrowed) /* fails while others use it */
			unlinkat(leaf->base_fd, "../brig", AT_REMOVEDIR);
		fd_closep(&leaf->fd);
		fd_closep(&leaf->base_fd);
	}
	g->n = 0;
	return r;
}

void group_clear(const char *cache_dir, uint32_t slot)
{
	struct group_trees trees;
	char               name[32];

	snprintf(name, sizeof name, "cell-%u", slot);
	group_trees_find(&trees, cache_dir);
	for (size_t i = 0; i < trees.n; i++) {
		struct group_leaf leaf = { .base_fd = -1 };

		if (group_trees_open_base(&trees, i, &leaf) < 0)
			continue;
		(void)!clear_leftover(leaf.base_fd, name);
		if (leaf.borrowed)
			unlinkat(leaf.base_fd, "../brig", AT_REMOVEDIR);
		close(leaf.base_fd);
	}
}
