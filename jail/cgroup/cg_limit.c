/* cg_limit.c - limits as rows: a knob of the control groups, and what it is turned to */
#define _GNU_SOURCE
#include "clone.h"
#include "fd.h"
#include "file.h"
#include "cg.h"
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum value { VALUE_MEMORY, VALUE_MARK, VALUE_SOCKETS, VALUE_PIDS, VALUE_CPU_MAX, VALUE_QUOTA, VALUE_PERIOD, VALUE_ZERO, VALUE_ONE, VALUE_MOST };
enum { CPU_PERIOD_US = 100000, PAGE = 4096 };

/*
 * Limits on what the TCP and UDP sockets of cells hold. The kernel has one limit for the whole host
 * (net.ipv4.tcp_mem, udp_mem) and beyond it resets connections and drops packets of every process: a few cells must
 * not come near it.
 */
enum { SOCKET_BYTES_MAX = 32 * MIB, CELLS_THAT_FILL = 32, PROXIES_OWN_BYTES = 512 * MIB };
#define PROXIES_WEIGHT "10000" /* the most; each leaf of a cell has 100 */
#define SOCKET_LIMIT "memory.kmem.tcp.limit_in_bytes" /* v1 counts sockets apart, once a limit is set; v2 as memory */

/*
 * Half of what all sockets may hold before TCP comes under pressure. By default that is a sixteenth of the host's
 * memory (net.ipv4.tcp_mem, which cannot be read in a network namespace of our own).
 */
uint64_t cg_socket_bytes_of_host(void)
{
	struct sysinfo host;

	return sysinfo(&host) < 0 ? CELLS_THAT_FILL * (uint64_t)SOCKET_BYTES_MAX : (uint64_t)host.totalram * host.mem_unit / 32;
}

static uint64_t socket_bytes_of_cell(const struct limits *l)
{
	uint64_t most = l->memory_bytes < SOCKET_BYTES_MAX ? l->memory_bytes : SOCKET_BYTES_MAX, part = cg_socket_bytes_of_host() / CELLS_THAT_FILL;

	return part < most ? part : most;
}

/*
 * How far the mark is below the limit. Above the mark the kernel delays allocations, the longer the more is used
 * (mem_cgroup_handle_over_high(): 10 ms for 256 KiB at 1.1 % above it, 60 ms at 3 %), so the supervisor or launcher
 * can end the run before it reaches the limit.
 */
static uint64_t memory_high_margin(uint64_t limit)
{
	return limit / 32 > MIB ? limit / 32 : MIB;
}

void cg_limit_parent_sockets(const struct cg_leaf *base)
{
	char text[32];

	if (base->v2 || !(base->controllers & CG_MEMORY))
		return;
	snprintf(text, sizeof text, "%" PRIu64, cg_socket_bytes_of_host());
	(void)!file_write_existing(base->base_fd, SOCKET_LIMIT, text);
}

/*
 * v1: half, so that cells keep the other half of what their parent may hold. A kernel that does not count sockets
 * apart has no such file. v2 counts sockets as memory. memory.max would let the kernel kill brig-proxy, the network
 * of every run of a profile, for what one run did; above memory.high the kernel shrinks the windows of its sockets
 * and slows it down (mem_cgroup_under_socket_pressure()). This slows the network of all runs down, so memory.high is
 * above what one user can use in a profile: 2,048 connections, each with up to 133 KiB of brig-proxy's own memory.
 */
int cg_limit_proxy_group(const struct cg *g, struct err *e)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);
	const char           *file = leaf && leaf->v2 ? "memory.high" : SOCKET_LIMIT;
	char                  text[32];

	if (!leaf || faccessat(leaf->fd, file, F_OK, 0) < 0)
		return 0;
	if (leaf->v2 && faccessat(leaf->fd, "cpu.weight", F_OK, 0) == 0 && file_write_existing(leaf->fd, "cpu.weight", PROXIES_WEIGHT) < 0)
		return err_sys(e, "control group %s of brig-proxy: cpu.weight = " PROXIES_WEIGHT, g->name);
	snprintf(text, sizeof text, "%" PRIu64, leaf->v2 ? cg_socket_bytes_of_host() + PROXIES_OWN_BYTES : cg_socket_bytes_of_host() / 2);
	return file_write_existing(leaf->fd, file, text) < 0 ? err_sys(e, "control group %s of brig-proxy: %s = %s", g->name, file, text) : 0;
}

pid_t cg_clone_into_proxy_group(const struct cg *g, const struct clone_args *args)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);

	return clone_into_group(args, leaf && leaf->v2 ? leaf->fd : -1);
}

int cg_join_proxy_group(const struct cg *g, struct err *e)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);

	if (!leaf || leaf->v2)
		return 0;
	return file_write_existing(leaf->fd, "tasks", "0") < 0 ? err_sys(e, "control group %s of brig-proxy cannot be entered", g->name) : 0;
}

/* clang-format off */
static const struct knob {
	unsigned    controller;
	bool        v2;
	const char *file;
	enum value  value;
	enum layer  layer;
	bool        optional; /* kernels without swap accounting do not have the file */
} knobs[] = {
	{ CG_MEMORY,  true,  "memory.max",                  VALUE_MEMORY,  LAYER_MEMORY, false },
	{ CG_MEMORY,  true,  "memory.high",                 VALUE_MARK,    LAYER_MEMORY, false }, /* struct cg_oom */
	{ CG_MEMORY,  true,  "memory.swap.max",             VALUE_ZERO,    LAYER_MEMORY, true },
	{ CG_MEMORY,  true,  "memory.oom.group",            VALUE_ONE,     LAYER_MEMORY, false }, /* half a process tree is worse than none */
	{ CG_MEMORY,  false, "memory.memsw.limit_in_bytes", VALUE_MOST,    LAYER_MEMORY, true },  /* only to raise: the next may not exceed it */
	{ CG_MEMORY,  false, "memory.limit_in_bytes",       VALUE_MEMORY,  LAYER_MEMORY, false },
	{ CG_MEMORY,  false, "memory.memsw.limit_in_bytes", VALUE_MEMORY,  LAYER_MEMORY, true },  /* may not be lower than the row above */
	{ CG_MEMORY,  false, SOCKET_LIMIT,                  VALUE_SOCKETS, LAYER_MEMORY, true },
	{ CG_PIDS,    true,  "pids.max",                    VALUE_PIDS,    LAYER_PIDS,   false },
	{ CG_PIDS,    false, "pids.max",                    VALUE_PIDS,    LAYER_PIDS,   false },
	{ CG_CPU,     true,  "cpu.max",                     VALUE_CPU_MAX, LAYER_CPU,    false },
	{ CG_CPU,     false, "cpu.cfs_period_us",           VALUE_PERIOD,  LAYER_CPU,    false },
	{ CG_CPU,     false, "cpu.cfs_quota_us",            VALUE_QUOTA,   LAYER_CPU,    false },
};
/* clang-format on */

static uint64_t format_knob_value(const struct knob *k, const struct limits *l, char *buf, size_t len)
{
	uint64_t value = 0;

	switch (k->value) {
	case VALUE_MEMORY:
		value = l->memory_bytes;
		break;
	case VALUE_MARK:
		value = l->memory_bytes - memory_high_margin(l->memory_bytes);
		break;
	case VALUE_SOCKETS:
		value = socket_bytes_of_cell(l);
		break;
	case VALUE_PIDS:
		value = l->pids + 1; /* brig's PID 1 counts, too */
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
	case VALUE_MOST:
		value = INT64_MAX / PAGE * PAGE;
		break;
	case VALUE_ZERO:
		break;
	}
	snprintf(buf, len, k->value == VALUE_CPU_MAX ? "%" PRIu64 " %d" : "%" PRIu64, value, CPU_PERIOD_US);
	return value;
}

/* The kernel rounds memory limits down to a page (64 KiB at most); other values come back unchanged. */
static bool is_value_kept(const char *text, uint64_t asked)
{
	uint64_t got = strtoull(text, NULL, 10);

	return got <= asked && asked - got < 64 * KIB && (got || !asked);
}

static int write_knob(const struct cg_leaf *leaf, const struct knob *k, const struct limits *l, struct err *e)
{
	char      text[64], back[64];
	uint64_t  asked = format_knob_value(k, l, text, sizeof text);
	scoped_fd fd    = openat(leaf->fd, k->file, O_RDWR | O_CLOEXEC);
	ssize_t   n;

	if (fd < 0 && k->optional && errno == ENOENT)
		return 0;
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || (n = pread(fd, back, sizeof back - 1, 0)) < 0)
		return err_sys(e, "set-up step limits: %s = %s", k->file, text);
	back[n] = 0;
	if (!is_value_kept(back, asked))
		return err_set(e, ERR_SETUP, "set-up step limits: %s = %s: the kernel kept %.20s", k->file, text, back);
	return 0;
}

static void note_limited_layers(struct cg *g)
{
	static const struct {
		unsigned    controller;
		enum layer  layer;
		const char *name;
	} rows[] = {
		{ CG_MEMORY, LAYER_MEMORY, "memory" },
		{ CG_PIDS, LAYER_PIDS, "pids" },
		{ CG_CPU, LAYER_CPU, "cpu" },
		{ CG_CPUACCT, LAYER_CPU_TIME, "cpuacct" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_there = cg_leaf_with_controller(g, rows[i].controller);

		if (!is_there && !g->missing && !g->why[0])
			snprintf(g->why, sizeof g->why, "no usable %s controller in the control groups", rows[i].name);
		*(is_there ? &g->layers : &g->missing) |= 1ull << rows[i].layer;
	}
}

/*
 * v1: a process that gets no memory waits until the supervisor or launcher ends the run (cg_watch_oom()); the
 * kernel's OOM killer would write a hundred lines into the host's log. Where it cannot be switched off, it kills.
 */
static void disable_kernel_oom_killer(const struct cg *g)
{
	const struct cg_leaf *leaf = cg_leaf_with_controller(g, CG_MEMORY);

	if (leaf && !leaf->v2)
		(void)!file_write_existing(leaf->fd, "memory.oom_control", "1");
}

int cg_check_required_limits(const struct cg *g, const struct limits *limits, struct err *e)
{
	uint64_t    missing = g->missing & limits->must;
	bool        memory  = missing & LAYER_BIT(MEMORY);
	const char *name    = memory ? "memory" : "cpus";

	if (!missing)
		return 0;
	return err_set(e, ERR_MISSING, "the limit %s was asked for and cannot be held here: no usable %s controller in the control groups; --allow-missing %s runs without it, brig doctor says what it needs", name, memory ? "memory" : "cpu", name);
}

int cg_set_limits(struct cg *g, const struct limits *limits, struct err *e)
{
	const struct cg_held held   = { limits->memory_bytes, limits->pids, limits->cpus };
	bool                 raises = g->held.memory_bytes && held.memory_bytes > g->held.memory_bytes;

	if (memcmp(&held, &g->held, sizeof held) == 0)
		return 0;
	g->held.pids = 0;
	note_limited_layers(g);
	disable_kernel_oom_killer(g);
	for (size_t i = 0; i < ARRAY_LEN(knobs); i++) {
		const struct cg_leaf *leaf = cg_leaf_with_controller(g, knobs[i].controller);

		if (!leaf || leaf->v2 != knobs[i].v2 || (knobs[i].value == VALUE_MOST && !raises))
			continue;
		if (write_knob(leaf, &knobs[i], limits, e) < 0)
			return -1;
	}
	g->held = held;
	return 0;
}
