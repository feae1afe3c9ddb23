/*
 * group.h - the control groups of one cell: limits in, counters out.
 *
 * v2, v1 and hybrid hosts behind one table of knobs and one of counters. A
 * cell has one leaf in each hierarchy that carries a controller we use, named
 * by its slot and locked (flock) while its launcher lives. A leaf that is
 * already there and not locked belonged to a launcher that crashed, and is
 * emptied first; one that is locked belongs to a launcher that does not share
 * our runtime directory (another mount namespace): its slot is not ours.
 *
 * Processes are never moved in from outside: writing a pid into cgroup.procs
 * waits for an RCU grace period, 11.6 ms on an idle machine (m). On v2 the
 * cell is cloned into its leaf, on v1 it writes "0" into the leaf's tasks.
 */
#pragma once
#include "err.h"
#include "limits.h"

enum { GROUP_TREES_MAX = 5, GROUP_PATH_MAX = 256 };

enum group_controller {
	GROUP_MEMORY  = 1 << 0,
	GROUP_PIDS    = 1 << 1,
	GROUP_CPU     = 1 << 2,
	GROUP_CPUACCT = 1 << 3, /* v1 only; v2 counts CPU time in every group */
	GROUP_IO      = 1 << 4,
};

struct group {
	struct group_leaf {
		int      base_fd, fd; /* the group above, and the leaf */
		bool     v2, made;
		bool     borrowed;    /* the group above is below somebody else's: it goes when it is empty */
		unsigned controllers; /* bits of enum group_controller */
	} leaf[GROUP_TREES_MAX];
	size_t   n;
	char     name[32];
	uint64_t layers, missing; /* bits of enum layer that group_limit() put in force, or could not */
	char     why[160];        /* of the first that is missing */
};

/* Figures are -1 when this host does not have them. */
struct group_usage {
	int64_t memory_peak, cpu_ns, pids_peak, pids_refused, oom_kills, io_read, io_write;
};

enum group_answer { GROUP_MADE, GROUP_TAKEN, GROUP_FAILED };

/*
 * Find the hierarchies (libcgroup; kept in cache_dir, checked at each use) and make the leaves. Never
 * fails for want of a controller: what is missing is in ->missing after group_limit(). FAILED, with *e,
 * when a leaf of a crashed predecessor cannot be emptied; TAKEN when another slot must be tried.
 */
must_use enum group_answer group_open(struct group *ret, const char *cache_dir, uint32_t slot, struct err *e);

/* Writes every knob and reads it back. */
must_use int group_limit(struct group *g, const struct limits *limits, struct err *e);

/* For clone3(): the v2 leaf, or -1. */
int group_clone_fd(const struct group *g);

/* The v1 leaves' tasks files, opened by us because the kernel asks the opener. Returns how many. */
must_use int group_open_tasks(const struct group *g, int fds[GROUP_TREES_MAX], struct err *e);

/* *ret: an eventfd that becomes readable when memory is used up (v1), or -1: v2 kills the whole leaf by itself. */
must_use int group_watch_oom(const struct group *g, int *ret, struct err *e);

int64_t group_cpu_ns(const struct group *g);
void    group_read(const struct group *g, struct group_usage *ret);
void    group_kill(const struct group *g); /* v2: cgroup.kill. Otherwise nothing: killing PID 1 does it */

/* Waits (at most 2 s) until the leaves are empty, and removes them. 0 or -1 with the reason. */
must_use int group_close(struct group *g, struct err *e);

/* Empties and removes the leaves of a slot whose launcher died. The caller holds the slot. */
void group_clear(const char *cache_dir, uint32_t slot);

/* --- for group_limit.c and group_count.c --- */

const struct group_leaf *group_leaf_with(const struct group *g, unsigned controller); /* or NULL */

/* A kernel file of at most a page or so, NUL-terminated; "" and false when it is not there. */
bool group_read_file(int dir, const char *name, char *buf, size_t len);
