/*
 * child.h - from clone() to exec(): system calls only, no heap, no stdio.
 *
 * PID 1 builds a cell and becomes brig-init. The program's process comes from outside: a fork
 * server (fork_server.h) forks it, it enters the cell, and gives up every right. A forker's fork
 * then execs. A zygote's fork goes on in its own interpreter, or execs if its spec asks for that.
 *
 * Each of them walks its own tables of steps. What the steps need is decided before and is in
 * child_ctx. A step that fails reports its row and errno over report_fd, and nothing runs: a fork
 * is asked for only after brig-init has reported that it is hardened (protocol.h).
 *
 * What to run comes later, in the cell's order file, so that a cell can be ready before any run
 * wants it.
 */
#pragma once
#include "child_table.h"
#include "err.h"
#include "exec_args.h"
#include "filter.h"
#include "cg.h"
#include "mount_plan.h"
#include "run_spec_file.h"
#include "pipes.h"
#include "protocol.h"

#include <errno.h>
#include <unistd.h>

/*
 * Messages over report_fd. CHILD_PREPARED carries the descriptors below, CHILD_LISTENER the seccomp listener. If the
 * kernel does not let the fork send it, detail is the listener's number in the fork, which waits for one byte: 1, the
 * listener was taken (pidfd_getfd); 0, it cannot be.
 */
enum child_message { CHILD_FAILED, CHILD_PREPARED, CHILD_EXECS, CHILD_LISTENER };

/* The mounts that a run can fill: /tmp, /dev/shm, /workspace, in this order. */
enum { CELL_MOUNTS = 3 };

/*
 * Descriptors that PID 1 sends with CHILD_PREPARED: main.py, empty and open for writing; the program's ends of its
 * pipes; the client's ends of all four pipes, in the order of pipes.h; and the mounts that a run can fill.
 */
enum {
	PREPARED_CODE, PREPARED_IN, PREPARED_OUT, PREPARED_ERR, PREPARED_RESULT, PREPARED_CLIENT,
	PREPARED_MOUNTS = PREPARED_CLIENT + PIPES_MAX,
	PREPARED_FDS    = PREPARED_MOUNTS + CELL_MOUNTS,
};

/* A fork made ahead of its order shows at most so many bytes of arguments in /proc, and as many of environment. */
enum { CHILD_SHOWN_BYTES = 4096 };

/* The descriptors that a fork is handed, besides its report socket. It opens the last one itself. */
enum { HANDED_ORDERS, HANDED_ORDER_FILE, HANDED_CODE, HANDED_IN, HANDED_OUT, HANDED_ERR, HANDED_RESULT, HANDED_NULL, HANDED_FDS };

/* The program's rlimits. processes: all of the program's id in the cell; the others hold for each process. */
struct child_rlimits {
	uint64_t files, cpu_s, cpu_s_max, data, processes; /* cpu_s_max: hard limit, to which a session raises cpu_s */
};

enum { CHILD_DETAIL_EXECS = 1 }; /* the exec or a failure follows; 0: a zygote's fork without rights */
enum { CHILD_DETAIL_ASKED = 0 }; /* of the step workdir: the directory that the order names failed, not /workspace */

struct child_report {
	enum child_message message;
	enum child_table table;
	unsigned         step;
	int              detail; /* the mount or limit that failed, -1: no parts; the listener; or one of the above */
	int              errnum;
	int64_t          cpu_ns; /* of the set-up since the cell joined its groups: not charged to the program */
	int64_t          cpu_before_ns; /* with CHILD_PREPARED: PID 1's, for the fork, which reports CHILD_EXECS */
};

/* What PID 1 builds its cell from; a zygote has only the mounts. */
struct child_build {
	const struct mount_plan *mounts;
	int                      root_fd; /* detached mounts of the rootfs and of the devices in it */
	int                      shown_fd[MOUNT_SHOWN_MAX];
	unsigned                 owner_id, pipes_id; /* PID 1's and the program's, seen outside: they own what it makes */
	int                      user_ns_fd; /* of the slot (user_ns.h); entered when power over the cell is not needed */
	bool                     is_oom_target;
	int                      init_fd;    /* memfd with brig-init */
	int                      slot_fd;
};

/* A zygote's main.py, and the extension that this loads: sealed memory files. */
struct child_zygote {
	int      code_fd, extension_fd;
	uint32_t code_len, extension_len;
};

/* A fork that becomes a program: what it was requested with, then what it has read. */
struct child_fork {
	unsigned                 program_id; /* as seen inside; equal to init_id if the slot has only one id */
	unsigned                 landlock_abi; /* 0: the kernel has none */
	bool                     workspace_exec;
	const struct sock_fprog *filter, *notifying; /* as in cell_spec */
	struct child_rlimits     rlimits;
	int                      cell_pidfd;            /* PID 1 of the cell that it enters */
	int                      handed_fd[HANDED_FDS]; /* by HANDED_ORDERS and so on */
	bool                     stays;    /* a zygote's fork that goes on without an exec, unless its spec asks for one */
	bool                     is_ahead; /* it reads its spec after all steps */
	bool                     has_code; /* false: main.py is removed */

	struct exec_lists       *lists; /* memory for the paths, arguments and environment of its spec */
	struct run_spec_head     spec;  /* once it was read; its texts are in lists and in code */
	char                    *code;
	char                    *shown; /* if is_ahead: CHILD_SHOWN_BYTES of arguments and of environment in /proc */
	int64_t                  init_cpu_ns; /* if it stays: PID 1's CPU time, read before the filter is installed */
};

struct child_ctx {
	int      report_fd; /* socket; PID 1, and the cell with it, ends when the other end is closed */
	int      join_fd[CG_TREES_MAX]; /* tasks of the v1 groups, as cg_open_join_files() opened them */
	int      join_len;
	unsigned init_id; /* PID 1's id as seen inside */
	int64_t  cpu_before_ns; /* CPU time before joining the groups: PID 1's; in a fork, PID 1's and its own */
	int      detail;  /* for the report of a step that fails */
	struct child_build  build;
	struct child_fork   fork;
	struct child_zygote zygote;
};

_Noreturn void child_build_cell_and_exec_init(struct child_ctx *c);

/*
 * In a fork: enters the cell, then walks the program's table. Returns only in a fork that stays, which then has no
 * rights and has the filter on. After a failure it reports the step and exits.
 */
void child_become_program(struct child_ctx *c);
/*
 * After child_become_program(), before anything of the run is executed: reports that the fork has given up its
 * rights, and the CPU time so far, which is not charged to the program. May be called again: the last report counts.
 * Calls only write() and clock_gettime(). 0 or -errno.
 */
must_use int child_report_confined(const struct child_ctx *c);
/* True: the order has arrived, or no process can send one any more. Calls only poll(). */
bool         child_wait_for_spec(const struct child_ctx *c, int wait_ms);
/* In a fork: waits for its order, and reads it. 0 or -errno. */
must_use int child_read_spec_file(struct child_ctx *c);
/* In a fork made ahead: enters the directory of its spec, or reports a failure and exits. Only chdir() and write(). */
void         child_enter_workdir(struct child_ctx *c);
/* Writes main.py, keeps the streams that the spec asks for, and closes all else that was handed. 0 or -errno. */
must_use int child_finish_streams(struct child_ctx *c);
/* Sets up the process and the mounts in which a zygote is executed. 0 or -errno; *step: the row that failed. */
must_use int child_run_zygote_steps(struct child_ctx *c, unsigned *step);

/* In a zygote's fork whose spec asks for an exec: child_finish_streams(), then the exec. Reports a failure and exits. */
_Noreturn void child_exec_ordered_command(struct child_ctx *c);

/* In the parent: the errno of a failed exec, if it is about the file; else 0. */
int child_exec_errno(const struct child_report *r);
/* In the parent: a failure as a sentence. */
int child_report_to_err(const struct child_report *r, const struct child_ctx *c, struct err *e);

/* landlock.c */
int landlock_abi(void); /* 0 when the kernel has none or it is switched off */
int child_restrict_with_landlock(struct child_ctx *c);

typedef int child_step_fn(struct child_ctx *);
struct child_step {
	const char    *name;
	child_step_fn *run;
	const char    *reason;
};
/* End with a NULL name. */
extern const struct child_step child_cell_steps[], child_program_steps[], child_enter_steps[], child_zygote_steps[];
extern const struct child_step *const child_tables[]; /* by enum child_table */

/* Steps of PID 1 and of the program: after them an exec gains no right. */
int child_empty_bounding_set(struct child_ctx *c);
int child_lock_securebits(struct child_ctx *c);

/* Steps of PID 1 and of a fork that enters (child_enter.c). child_join_cgroups(): those of v1. */
int child_join_cgroups(struct child_ctx *c);
int child_set_init_ids(struct child_ctx *c);
int child_join_new_keyring(struct child_ctx *c);
/* Step of a fork: what /proc shows as its arguments and environment. */
int child_set_proc_args(struct child_ctx *c);

/* Step of a fork server: its forks inherit these limits. */
int child_set_fixed_rlimits(struct child_ctx *c);

/* For steps: the kernel's answer as 0 or -errno. */
static inline int child_sys(long r)
{
	return r < 0 ? -errno : 0;
}

/* The same for the whole text. */
static inline int child_write_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(fd, text, len);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

/* --- child_report.c --- */

enum { CHILD_EXIT_SETUP = 125 };

/* Reports that this step failed, and exits. Calls only write(). */
_Noreturn void child_report_failure_and_exit(const struct child_ctx *c, enum child_table table, unsigned step, int errnum);

/* Sends a report, with n descriptors. 0 or -errno: then the step must fail: nothing may run without its report. */
int child_send_report(const struct child_ctx *c, enum child_message message, const int *fds, size_t n);

/* CPU time of a process, by its number in the caller's pid namespace; 0: the caller. Returns 0 if it cannot be read. */
int64_t child_cpu_ns(pid_t pid);
