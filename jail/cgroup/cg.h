/*
 * cg.h - the control groups of one cell: limits in, counters out.
 *
 * v2, v1 and hybrid hosts behind one table of knobs and one of counters. A
 * cell has one leaf in each hierarchy that carries a controller we use, named
 * by its slot and locked (flock) while the process that made it lives. A leaf
 * that exists and is not locked was left by a process that crashed, and is
 * emptied first. A leaf that is locked belongs to a launcher that does not
 * share our runtime directory (another mount namespace), so another slot must
 * be tried.
 *
 * Processes are never moved in from outside: a write of a pid to cgroup.procs
 * waits for an RCU grace period, measured as 11.6 ms on an idle machine. On v2
 * PID 1 is cloned into its leaf, on v1 it writes "0" into the leaf's tasks.
 */
#pragma once
#include "err.h"
#include "limits.h"

#include <linux/sched.h>
#include <sys/types.h>

enum { CG_TREES_MAX = 5, CG_PATH_MAX = 256 };

enum cg_controller {
	CG_MEMORY  = 1 << 0,
	CG_PIDS    = 1 << 1,
	CG_CPU     = 1 << 2,
	CG_CPUACCT = 1 << 3, /* v1 only; v2 counts CPU time in every group */
	CG_IO      = 1 << 4,
};

struct cg {
	struct cg_leaf {
		int      base_fd, fd; /* the group above, and the leaf */
		int      join_fd;     /* v1, where cells are built: the leaf's tasks, open for writing; else -1 */
		bool     v2, made;    /* made: the leaf exists and is ours to remove */
		bool     borrowed;    /* the group above is in one that brig did not make: removed when empty */
		bool     kept;        /* the group above is a kept parent (cg_parent_keep_open()), which owns base_fd */
		unsigned controllers; /* bits of enum cg_controller */
	} leaf[CG_TREES_MAX];
	size_t   n;
	char     name[32];
	bool     lent;            /* another process made the leaves, set their limits, and removes them */
	struct cg_held {
		uint64_t memory_bytes, pids, cpus;
	} held;                   /* set by cg_set_limits(); pids 0: a limit or a leaf lacks them, so all must be written */
	struct cg_files *files; /* cached descriptors, if the counters are read often; NULL: opened for each read */
	uint64_t layers, missing; /* bits of enum layer that cg_set_limits() put in force, or could not */
	char     why[160];        /* why the first of the missing layers is missing */
};

/* Descriptors of files of the leaves, each opened at its first use. All zero: none. */
struct cg_files {
	size_t n;
	struct {
		int         dir; /* the leaf's fd */
		const char *name;
		int         fd;  /* -errno: it could not be opened */
	} file[16];
	/* nr_throttled of cpu.stat at cg_keep_counter_files_open(); bytes that were charged when the first program of these leaves waited, 0: not yet */
	int64_t throttled, charged;
};

/* Where leaves are made: the groups above them. */
struct cg_parent {
	struct cg_leaf base[CG_TREES_MAX]; /* fd: -1 */
	size_t         n;
	char           why[160]; /* why a hierarchy is left out; "": no reason is known */
};

/* Figures are -1 when this host does not have them. */
struct cg_usage {
	int64_t memory_peak, cpu_ns, pids_peak, pids_refused, oom_kills, io_read, io_write;
};

enum cg_answer { CG_MADE, CG_TAKEN, CG_FAILED };

/*
 * Finds the hierarchies (libcgroup; the answer is cached in cache_dir and checked at each use) and makes the leaves.
 * Does not fail when a controller is missing: ->missing has it after cg_set_limits(). FAILED, with *e, when a leaf
 * cannot be made, or a crashed process left one that cannot be emptied; TAKEN when another slot must be tried.
 */
must_use enum cg_answer cg_make_for_slot(struct cg *ret, const char *cache_dir, uint32_t slot, struct err *e);

/*
 * The two halves of cg_make_for_slot(), to make many groups in one parent. A kept parent stays open longer than its leaves and
 * is not removed with the last one. Launchers with another runtime directory make no leaves there, so a leaf's name
 * is not checked again after it is locked.
 */
void                    cg_parent_open(struct cg_parent *ret, const char *cache_dir);
void                    cg_parent_keep_open(struct cg_parent *parent);
must_use enum cg_answer cg_make_in_parent(struct cg *ret, const struct cg_parent *parent, uint32_t slot, struct err *e);
void                    cg_parent_close(struct cg_parent *parent);

/*
 * For a supervisor with other ids than ours: members of the gid that owns the leaves (privilege_set_fs_group()
 * before they are made) may enter them, and on v2 freeze and kill their processes and write memory.high, on v1 reset
 * CPU time and peak memory. The limits stay ours. To let a process enter, v2 also asks for write access to
 * cgroup.procs of the common ancestor: cg_parent_lend_to_gid().
 */
must_use int cg_lend_to_supervisor(const struct cg *g, struct err *e);
must_use int cg_parent_lend_to_gid(const struct cg_parent *parent, unsigned gid, struct err *e);
/*
 * Whenever systemd starts a process of a unit, as for ExecReload=, it changes the owner of the unit's control group
 * back to the unit's user and gid, which undoes cg_parent_lend_to_gid(). Returns a descriptor that becomes readable when
 * this has happened; the caller closes it, and calls cg_parent_lend_to_gid() again. -1: there is no v2 group, or it cannot
 * be watched.
 */
int cg_parent_watch(const struct cg_parent *parent);

/*
 * Writes every knob and reads it back; does nothing when the same limits are set already. On v1, processes that get
 * no memory wait from now on instead of being killed: see struct cg_oom.
 */
must_use int cg_set_limits(struct cg *g, const struct limits *limits, struct err *e);
/* After cg_set_limits(). -1: a limit that the caller insists on (limits->must) is missing, because its controller is. */
must_use int cg_check_required_limits(const struct cg *g, const struct limits *limits, struct err *e);

/* Bytes that sockets of all cells below one parent may hold together. Only v1 counts them apart from other memory. */
uint64_t cg_socket_bytes_of_host(void);
/* Sets this limit on a parent's base (v1). A failure is ignored: each cell has a limit of its own. */
void cg_limit_parent_sockets(const struct cg_leaf *base);

/*
 * One leaf for all brig-proxy of a monitor bounds what their TCP sockets hold together, whichever profile and user
 * they serve; on v2, where sockets count as memory, together with their own memory. It has no other limit. A proxy
 * joins its memory leaf alone before exec (v1), or is cloned into it (v2), where it has the highest cpu.weight, so
 * that cells do not hold it back. Without such a leaf there is no limit.
 */
must_use int   cg_limit_proxy_group(const struct cg *g, struct err *e);
must_use pid_t cg_clone_into_proxy_group(const struct cg *g, const struct clone_args *args); /* as clone_into_group() */
must_use int   cg_join_proxy_group(const struct cg *g, struct err *e);                /* the calling process */

/* For clone3(CLONE_INTO_CGROUP): the v2 leaf, which g owns, or -1. */
int cg_clone_fd(const struct cg *g);

/*
 * v1: a process joins by writing "0" into the tasks of each leaf. The kernel checks the effective uid of the process
 * that opened the file: it must be the real or the saved uid of the process that joins (cgroup1_procs_write()), or
 * the host's root.
 */
must_use int cg_open_join_files(struct cg *g, struct err *e);
/* The descriptors still belong to g; returns how many there are. */
int cg_join_fds(const struct cg *g, int fds[CG_TREES_MAX]);

/*
 * A run that is out of memory is ended by its supervisor or launcher: the kernel's OOM killer would write a hundred
 * lines into the host's log. v1: a process that needs memory waits, and an eventfd reports it. v2: above a mark below
 * the limit (memory.high) the kernel slows processes down, and memory.events reports it.
 */
struct cg_oom {
	int   fd;     /* to be polled; -1: nothing bounds memory */
	short events; /* what to poll fd for */
	int   mark_fd; /* v2: memory.high, open for writing; -1 on v1 */
	int   helper_fd; /* v2: pidfd of a process that tests if memory can be reclaimed; fd is not polled then. -1: none */
	pid_t helper;    /* its pid, until cg_reap_oom_helper() or cg_oom_close(); 0: none */
};

#define CG_OOM_NONE (struct cg_oom){ .fd = -1, .mark_fd = -1, .helper_fd = -1 }

/* The caller closes it with cg_oom_close(). */
must_use int cg_watch_oom(const struct cg *g, struct cg_oom *ret, struct err *e);
/*
 * Call when fd is ready; consumes the event. v1: true when the cell's own group is out of memory: a group above
 * causes events, too. v2: always false; may start the helper, and when helper_fd is readable, cg_reap_oom_helper()
 * has the answer.
 */
must_use bool cg_take_oom_event(const struct cg *g, struct cg_oom *oom);
/* v1: causes an event, so that the caller checks again. On v2 there is one each time usage passes the mark. */
void          cg_rearm_oom_watch(const struct cg_oom *oom);
/* Reaps the helper and closes helper_fd. True: the kernel cannot reclaim enough, so the group is out of memory. */
must_use bool cg_reap_oom_helper(struct cg_oom *oom);
/* Kills the helper but does not wait for it: the caller reaps all its children. */
void          cg_oom_close(struct cg_oom *oom);

int64_t cg_read_cpu_ns(const struct cg *g);
int64_t cg_read_pids_current(const struct cg *g); /* processes and threads; -1: no group counts them */
void    cg_read_usage(const struct cg *g, struct cg_usage *ret);
/* v2: stops or continues all processes of the group; stopped ones can still be killed. False: impossible here. */
must_use bool cg_set_frozen(const struct cg *g, bool is);
void    cg_kill(const struct cg *g); /* v2: cgroup.kill. v1: nothing; the caller kills PID 1, which ends the cell */

/* Waits until the leaves are empty, at most 2 s each, removes them and closes g. -1: one could not be removed. */
must_use int cg_close(struct cg *g, struct err *e);

/* Removes the leaves without waiting; true when all are gone. After false it can be called again. */
bool cg_remove(struct cg *g);
/*
 * Whether cg_reset_counters() can make the leaves as new for another cell. Not with v2: a write to memory.peak resets it for
 * that one open descriptor only, and before Linux 6.12 not at all. Not without leaves either: only an empty leaf shows
 * that the cell is gone.
 */
bool cg_is_renewable(const struct cg *g);
/* No process is in any leaf. */
bool cg_is_empty(const struct cg *g);
/*
 * Makes leaves that were lent as new, except for their limits. A leaf that the kernel cannot reset, as all of v2, is
 * removed and made again: *remade is set then. False when that fails or a process is left: the caller removes them all.
 */
must_use bool cg_renew_for_next_cell(struct cg *g, bool *remade);
/*
 * The supervisor's part of cg_renew_for_next_cell(), through ->files: resets what an ended cell left in leaves that the supervisor
 * keeps for its next cell. False: the leaves go back to the monitor. Does not check the charged memory, because the
 * kernel frees it late; cg_reset_memory_peak() does.
 */
must_use bool cg_reset_counters(struct cg *g);
/* Makes g use f, all zero at first, which must outlive g: opens every file that will be read, and counts anew. */
void          cg_keep_counter_files_open(struct cg *g, struct cg_files *f);
/*
 * Call when the next program exists and waits: resets the peak of memory to what is charged now. False when that is
 * more than CG_CHARGED_MAX above what was charged when the first program of these leaves waited: earlier cells left
 * it.
 */
must_use bool cg_reset_memory_peak(struct cg *g);
void          cg_files_close(struct cg_files *f);
/* Kills every process in the leaves, for when killing PID 1 was not enough. */
void cg_kill_members(const struct cg *g);

/* Empties and removes the leaves of a slot whose launcher died. The caller holds the slot. */
void cg_clear_leftover_of_slot(const char *cache_dir, uint32_t slot);
void cg_clear_leftover_in(const struct cg_parent *parent, uint32_t slot);
/* Called when the process that kept the parent ends. The groups stay if other processes have leaves there. */
void cg_parent_remove(struct cg_parent *parent);

/* --- cg_trace.c --- */

/*
 * The most memory that an empty group may still be charged for: pages that were read from a disk, objects that the
 * kernel frees later, and the reserve of each CPU (256 KiB). It counts against the limit of the next cell.
 */
enum { CG_CHARGED_MAX = 256 * KIB };

/* Resets the counters that can be reset; false when one stays too high. at_once: only those that cg_reset_counters() checks. */
bool cg_leaf_reset_counters(const struct cg *g, const struct cg_leaf *leaf, bool at_once);
/* Opens the files that cg_leaf_reset_counters() reads at_once, and keeps them in ->files. */
void cg_open_counter_files(struct cg *g, const struct cg_leaf *leaf);

/* --- cg_leaf.c --- */

const struct cg_leaf *cg_leaf_with_controller(const struct cg *g, unsigned controller); /* or NULL */

/* Reads a kernel file of up to len - 1 bytes; NUL-terminated. When it cannot be read: "" and false. */
bool cg_read_file(int dir, const char *name, char *buf, size_t len);
/* The same for a leaf of g, through ->files if it is set, which keeps the pointer `name`: pass a string constant. */
bool cg_read_counter_text(const struct cg *g, const struct cg_leaf *leaf, const char *name, char *buf, size_t len);
/* Opened for reading, and for writing if that is allowed. Returns a descriptor that f owns, or -errno. */
int  cg_get_kept_file(struct cg_files *f, const struct cg_leaf *leaf, const char *name);
