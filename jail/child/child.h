/*
 * child.h - from clone() to exec(): system calls only, no heap, no stdio.
 *
 * PID 1 builds a cell, and becomes brig-init. The program enters from outside:
 * a fork server (fork_server.h) forks it, it enters the cell, and gives
 * everything up; a forker's fork execs, a zygote's goes on, or execs as well. Each walks its
 * own table of steps. Everything they need is decided before and lies in
 * child_ctx. A step that fails says its row and errno over report_fd, and
 * nothing runs: a fork is asked for only after brig-init has said that it is
 * as hard as it gets.
 *
 * What shall run comes later, in the cell's order file: a cell can stand ready
 * before any run wants it.
 */
#pragma once
#include "child_table.h"
#include "err.h"
#include "exec_args.h"
#include "filter.h"
#include "group.h"
#include "mount_plan.h"
#include "order_file.h"
#include "pipes.h"
#include "protocol.h"

#include <errno.h>

/* What comes over report_fd. Descriptors come with CHILD_PREPARED, as below, and with CHILD_LISTENER: of the filter. */
enum child_word { CHILD_FAILED, CHILD_PREPARED, CHILD_EXECS, CHILD_LISTENER };

/* Of /tmp, /dev/shm, /workspace, in this order: what a run can fill. */
enum { CELL_MOUNTS = 3 };

/*
 * What PID 1 has made for the program: the program's ends of its pipes, with main.py, empty and open for writing;
 * the client's ends, in the order of pipes.h with all of them; and the mounts that a run can fill.
 */
enum {
	PREPARED_CODE, PREPARED_IN, PREPARED_OUT, PREPARED_ERR, PREPARED_RESULT, PREPARED_CLIENT,
	PREPARED_MOUNTS = PREPARED_CLIENT + PIPES_MAX,
	PREPARED_FDS    = PREPARED_MOUNTS + CELL_MOUNTS,
};

/* How many bytes of its arguments, and of its environment, a process that was forked ahead shows in /proc. */
enum { CHILD_SHOWN_BYTES = 4096 };

/* What a fork is handed, beside its report. The last one it opens itself. */
enum { HANDED_ORDERS, HANDED_ORDER_FILE, HANDED_CODE, HANDED_IN, HANDED_OUT, HANDED_ERR, HANDED_RESULT, HANDED_NULL, HANDED_FDS };

/* The program's rlimits: of one process each; of its id in the cell. */
struct child_rlimits {
	uint64_t files, cpu_s, cpu_s_max, data, processes; /* cpu_s_max: to which a session raises it */
};

enum { CHILD_DETAIL_EXECS = 1 }; /* the next call executes the program, or fails; 0: a zygote's fork that has given everything up */
enum { CHILD_DETAIL_ASKED = 0 }; /* of the step workdir: the directory that the order names, and not /workspace */

struct child_report {
	enum child_word  message;
	enum child_table table;
	unsigned         step;
	int              detail; /* which mount, which limit; -1 when the step has no parts. Of CHILD_EXECS: */
	int              errnum;
	int64_t          cpu_ns; /* that the cell has used since it joined its groups: the set-up's, not the program's */
	int64_t          cpu_before_ns; /* with CHILD_PREPARED: for the fork that shall say CHILD_EXECS */
};

struct child_ctx {
	const struct mount_plan *mounts;
	int                      root_fd;  /* detached mounts of the rootfs and of the devices in it */
	int                      shown_fd[MOUNT_SHOWN_MAX];
	const char              *hostname;
	int                      join_fd[GROUP_TREES_MAX]; /* tasks of the v1 groups, as group_open_joins() opened them */
	int                      join_len;
	unsigned                 init_id, program_uid, program_gid; /* as seen inside; the same when there is only one */
	unsigned                 owner_id, pipes_id; /* PID 1's and the program's id as seen where the cell is built: of what PID 1 makes */
	int                      user_ns_fd; /* that PID 1 enters last (user_ns.h) */
	bool                     is_first_victim;
	int                      report_fd; /* socket; its end is the cell's */
	int                      init_fd;   /* memfd with brig-init */
	int                      slot_fd;
	unsigned                 landlock_abi; /* 0: the kernel has none */
	bool                     workspace_exec;
	const struct sock_fprog *filter, *notifying; /* as in cell_order */
	int                      cell_pidfd; /* CHILD_ENTER: PID 1 of the cell, and */
	int                      handed_fd[HANDED_FDS];
	bool                     stays;      /* a zygote's fork: it goes on with what it has in memory, unless its order says that it executes */
	bool                     is_ahead;   /* a fork: its order comes when all steps are done */
	bool                     has_code;   /* else main.py is removed */
	int                      code_fd, extension_fd; /* CHILD_ZYGOTE: what it executes, and what that loads; sealed memory files */
	uint32_t                 code_len, extension_len;

	/* what the steps are told and find out, on their side of the clone */
	struct child_rlimits     rlimits;
	struct exec_lists       *lists;      /* of a fork: room for the arguments of its order, and */
	struct order_head        order_file; /* the order, once it is there; its text is in lists, and */
	char                    *code;
	char                    *shown; /* of a fork without an order: two areas of CHILD_SHOWN_BYTES, its arguments in /proc */
	int64_t                  cpu_before_ns; /* PID 1's, before it joined the groups that count it */
	int64_t                  init_cpu_ns; /* of a fork: PID 1's, while it could be seen */
	int                      detail;
};

_Noreturn void child_run_cell(struct child_ctx *c);

/*
 * A fork: into the cell, then the program's own table. Returns in one that stays, when everything is given up and the filter
 * is on; after a failure, which it has told, it does not return.
 */
void child_become_program(struct child_ctx *c);
/*
 * After it, and before anything of the run is executed: reports that everything is given up, and its CPU time so far,
 * which is not charged to the program. May be called again. Only write() and clock_gettime() are called. 0 or -errno.
 */
must_use int child_say_stands(const struct child_ctx *c);
/* Its order is there, or nothing can send one any more. Only poll() is called. */
bool         child_has_order(const struct child_ctx *c, int wait_ms);
/* Takes the order of a fork. 0 or -errno. */
must_use int child_take_order_file(struct child_ctx *c);
/* With the order of one that waited for it: where it works. After a failure, which it has told, it does not return. Only chdir() and write() are called. */
void         child_enter_workdir(struct child_ctx *c);
/* With the order: main.py is written, the streams are those that were asked for, and nothing else is open. 0 or -errno. */
must_use int child_take_streams(struct child_ctx *c);
/* The place in which a zygote is executed. 0 or -errno; *step: which row failed. */
must_use int child_build_zygote(struct child_ctx *c, unsigned *step);

/* A zygote's fork that waited for an order, and shall execute what it is: as child_take_streams(), and then the last step of a program. */
_Noreturn void child_execute(struct child_ctx *c);

/* The parent's side: the errno of an exec that says something of the file, else 0. */
int child_exec_errno(const struct child_report *r);
/* A failure as a sentence. */
int child_explain(const struct child_report *r, const struct child_ctx *c, struct err *e);

/* landlock.c */
int landlock_abi(void); /* 0 when the kernel has none or it is switched off */
int child_landlock(struct child_ctx *c);

typedef int child_step_fn(struct child_ctx *);
struct child_step {
	const char    *name;
	child_step_fn *run;
	const char    *reason;
};
/* End with a NULL name. */
extern const struct child_step child_cell_steps[], child_program_steps[], child_enter_steps[], child_zygote_steps[];

/* In both tables: after them an exec gains no right. */
int child_bounding_set(struct child_ctx *c);
int child_securebits(struct child_ctx *c);

/* In both tables, of PID 1 and of a fork that enters (child_enter.c). Groups: those of v1. */
int child_join_groups(struct child_ctx *c);
int child_take_ids(struct child_ctx *c);
int child_new_keyring(struct child_ctx *c);
/* Of a fork, when it knows its arguments. */
int child_show_words(struct child_ctx *c);

/* Of a fork server: its forks inherit them. */
int child_fixed_rlimits(struct child_ctx *c);

/* For steps: the kernel's answer as 0 or -errno. */
static inline int child_sys(long r)
{
	return r < 0 ? -errno : 0;
}

/* --- child_report.c --- */

enum { CHILD_EXIT_SETUP = 125 };

/* Tells that this step failed, and ends. Only write() is called. */
_Noreturn void child_fail(const struct child_ctx *c, enum child_table table, unsigned step, int errnum);

/* Tells the launcher; a lost message means that nothing runs. */
int child_say(const struct child_ctx *c, enum child_word message, const int *fds, size_t n);

/* Of a process of the cell, by its number in there. */
int64_t child_cpu_ns(pid_t pid);
