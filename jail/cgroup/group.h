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

#include <sys/types.h>

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
		int      join_fd;     /* v1, in the process that builds cells: its tasks, open for writing; else -1 */
		bool     v2, made;
		bool     borrowed;    /* the group above is below somebody else's: it goes when it is empty */
		bool     kept;        /* the group above is a parent that stays open, and base_fd is the parent's */
		unsigned controllers; /* bits of enum group_controller */
	} leaf[GROUP_TREES_MAX];
	size_t   n;
	char     name[32];
	bool     lent;            /* somebody else made the leaves, set their limits, and removes them */
	struct group_held {
		uint64_t memory_bytes, pids, cpus;
	} held;                   /* what group_limit() has set; pids 0: not all, or not in each leaf */
	struct group_files *files; /* of a process that reads the counters again and again; NULL: they are opened each time */
	uint64_t layers, missing; /* bits of enum layer that group_limit() put in force, or could not */
	char     why[160];        /* of the first that is missing */
};

/* Descriptors of files of the leaves, opened when they are read for the first time. All zero: none. */
struct group_files {
	size_t n;
	struct {
		int         dir; /* of the leaf */
		const char *name;
		int         fd;  /* -errno: it could not be opened */
	} file[16];
	int64_t throttled, charged; /* as group_set_back() and group_begin_peak() found it */
};

/* Where leaves are made: the groups above them. */
struct group_parent {
	struct group_leaf base[GROUP_TREES_MAX]; /* fd: -1 */
	size_t            n;
	char              why[160]; /* there are fewer than there could be */
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

/*
 * The two halves of it, to make many groups in one parent. A parent that is kept outlives its leaves, is not removed with the last one,
 * and is no place for launchers that do not share our runtime directory: names need no second look then.
 */
void                       group_parent_open(struct group_parent *ret, const char *cache_dir);
void                       group_parent_keep(struct group_parent *parent);
must_use enum group_answer group_open_in(struct group *ret, const struct group_parent *parent, uint32_t slot, struct err *e);
void                       group_parent_close(struct group_parent *parent);

/*
 * For a supervisor with other ids than ours: the leaves' group (privilege_make_for_group() before they are made) may enter
 * them, and freeze and kill what is in there; v1: and set back the counters of CPU time and of the peak. The limits stay ours.
 * On v2 the kernel also asks who may write to the group above both (group_parent_lend()).
 */
must_use int group_lend(const struct group *g, struct err *e);
must_use int group_parent_lend(const struct group_parent *parent, unsigned gid, struct err *e);
/*
 * systemd gives a unit's group to the unit's user anew whenever it starts a process of the unit, as for ExecReload=, and
 * takes it from the other group with that. A descriptor that becomes readable when that has happened, so that the caller calls
 * group_parent_lend() again; the caller's. -1: there is no group that could be watched.
 */
enum { GROUP_LENT_MS = 100 }; /* within which it is lent again */
int group_parent_watch(const struct group_parent *parent);

/* Writes every knob and reads it back, unless they are turned to that. Processes that have no memory wait from now on: see struct group_oom. */
must_use int group_limit(struct group *g, const struct limits *limits, struct err *e);
/* -1: a limit that was asked for is not held by any group. After group_limit(). */
must_use int group_holds(const struct group *g, const struct limits *limits, struct err *e);

/* What sockets of all cells below one parent may hold together; version 1 alone counts them. */
uint64_t group_socket_bytes(void);
/* Of a parent's base: what its cells may have together. Where it cannot be set each has its own bound all the same. */
void group_limit_parent(const struct group_leaf *base);

/* For clone3(): the v2 leaf, or -1. */
int group_clone_fd(const struct group *g);

/*
 * v1: a process joins by writing "0" into the tasks of each leaf. The kernel asks for the effective id of the process that opened the
 * file: it must be the real or the saved id of the one that joins (cgroup1_procs_write()), or the host's root.
 */
must_use int group_open_joins(struct group *g, struct err *e);
/* Borrowed; returns how many. */
int group_join_fds(const struct group *g, int fds[GROUP_TREES_MAX]);

/*
 * A run that has no memory is ended by its launcher: the kernel would write a hundred lines into the log of the host. v1:
 * what needs memory waits, and an eventfd says so. v2: above a mark below the limit (memory.high) it is slowed down, and
 * memory.events says so.
 */
struct group_oom {
	int   fd;     /* to be polled; -1: nothing bounds memory */
	short events; /* for what */
	int   mark_fd; /* v2: memory.high */
	int   helper_fd; /* v2: pidfd of a process that looks what the kernel can take back; fd is not heard meanwhile. -1: there is none */
	pid_t helper;    /* its number, while it is not reaped */
};

#define GROUP_OOM_NONE (struct group_oom){ .fd = -1, .mark_fd = -1, .helper_fd = -1 }

/* The caller's to close with group_oom_close(). */
must_use int group_watch_oom(const struct group *g, struct group_oom *ret, struct err *e);
/* Takes the event. True: the group itself has no memory. Groups above have events, too. v2: helper_fd, when it can be read, says it. */
must_use bool group_has_no_memory(const struct group *g, struct group_oom *oom);
/* v1: makes an event, so that the caller looks again later. v2 has one each time that the mark is passed. */
void          group_ask_again(const struct group_oom *oom);
/* True: there is no memory that the kernel could take back. The helper is gone. */
must_use bool group_helper_says(struct group_oom *oom);
void          group_oom_close(struct group_oom *oom);

int64_t group_cpu_ns(const struct group *g);
int64_t group_pids_now(const struct group *g); /* processes and threads; -1: nobody counts them */
void    group_read(const struct group *g, struct group_usage *ret);
/* v2: its processes stop where they are, and can be killed all the same. False: this host cannot do that. */
must_use bool group_freeze(const struct group *g, bool is);
void    group_kill(const struct group *g); /* v2: cgroup.kill. Otherwise nothing: killing PID 1 does it */

/* Waits (at most 2 s) until the leaves are empty, and removes them. 0 or -1 with the reason. */
must_use int group_close(struct group *g, struct err *e);

/* The same without waiting: true when all is gone. */
bool group_remove(struct group *g);
/*
 * Whether they can be had again for another cell. Not with version 2: memory.peak is set back for one open descriptor, and
 * before Linux 6.12 not at all. Nor where there are none, which could tell that the cell is gone.
 */
bool group_is_renewable(const struct group *g);
/* No process is in any leaf. */
bool group_is_empty(const struct group *g);
/*
 * Of leaves that are renewable, were lent, and are empty: as if they had just been made, but for their limits. One that the kernel cannot
 * set back is removed and made again; false when that cannot be done, and all are to be removed.
 */
must_use bool group_renew(struct group *g);
/*
 * The same for the process that watches the cells, with ->files, of leaves that it had before: the cell is gone, and what it has left is set back.
 * False: they go back to the process that made them. The charge of memory is left out: the kernel frees late.
 */
must_use bool group_set_back(struct group *g);
void          group_keep_files(struct group *g, struct group_files *none);
/*
 * When the next program is there, and waits: the peak of memory starts from what is charged now. False when that is more than it was
 * when the first program of these leaves waited: the rest is of the cells before.
 */
must_use bool group_begin_peak(struct group *g);
void          group_files_close(struct group_files *f);
/* Where killing PID 1 did not do it: every process that is still there. */
void group_kill_members(const struct group *g);

/* Empties and removes the leaves of a slot whose launcher died. The caller holds the slot. */
void group_clear(const char *cache_dir, uint32_t slot);
void group_clear_in(const struct group_parent *parent, uint32_t slot);
/* At the end of the process that kept it; it stays when other processes have leaves there. */
void group_parent_remove(struct group_parent *parent);

/* --- group_trace.c --- */

/*
 * What the kernel still charges to an empty group: pages that were read from a disk, objects that it will free later, and
 * what each processor holds in advance (256 KiB). It counts against the limit of the next cell.
 */
enum { GROUP_CHARGED_MAX = 256 * KIB };

/* Sets back what can be; false when something is left. at_once: as group_set_back() does. */
bool group_leaf_is_as_new(const struct group *g, const struct group_leaf *leaf, bool at_once);
/* Of ->files: those that at_once reads. */
void group_open_traces(struct group *g, const struct group_leaf *leaf);

/* For group_renew.c: removes a leaf that is empty, makes another one of that name, and lends it. */
must_use bool group_make_again(struct group *g, struct group_leaf *leaf);

/* --- group_leaf.c --- */

const struct group_leaf *group_leaf_with(const struct group *g, unsigned controller); /* or NULL */

/* A kernel file of at most a page or so, NUL-terminated; "" and false when it is not there. */
bool group_read_file(int dir, const char *name, char *buf, size_t len);
/* The same of a leaf of g, by ->files if there are some. name: a constant. */
bool group_read_count(const struct group *g, const struct group_leaf *leaf, const char *name, char *buf, size_t len);
/* For reading, and for writing if that is allowed. A descriptor that stays theirs, or -errno. */
int  group_kept_file(struct group_files *f, const struct group_leaf *leaf, const char *name);
