/*
 * child.h - from clone() to exec(): system calls only, no heap, no stdio.
 *
 * Two processes come out of one clone: PID 1, which builds the cell, and the
 * program, which PID 1 forks and which gives everything up before it execs.
 * Each walks its own table of steps. Everything they need is decided before
 * and lies in child_ctx. A step that fails says its row and errno over
 * report_fd, and nothing runs: the program execs only after PID 1 has become
 * brig-init and said so.
 *
 * What shall run comes later, in a child_order: a cell can stand ready before
 * anybody wants it.
 */
#pragma once
#include "err.h"
#include "filter.h"
#include "group.h"
#include "mount_plan.h"
#include "pipes.h"
#include "words.h"

enum child_table { CHILD_CELL, CHILD_PROGRAM, CHILD_ENTER, CHILD_ZYGOTE };

/* What comes over report_fd. Descriptors come with CHILD_STREAMS: as in pipes.h. */
enum child_word { CHILD_FAILED, CHILD_READY, CHILD_STREAMS, CHILD_EXECS };

/* What goes over it, once: with the words, and the text of /workspace/main.py if there is one. Sealed memory files both. */
struct child_order {
	struct words words; /* fd: as received */
	int          code_fd;
	uint32_t     code_len;
	bool         stdin_pipe, result_pipe;
	bool         warm; /* a zygote has been asked to fork the program: an enum child_go follows */
	uint64_t     files, cpu_s, processes; /* of one process, of one process, of the program's id in the cell */
};

/* Follows an order that is warm, one byte over report_fd. */
enum child_go { CHILD_GO_COLD = 'c', CHILD_GO_WARM = 'w' };

struct child_report {
	enum child_word  word;
	enum child_table table;
	unsigned         step;
	int              detail; /* which mount, which limit; -1 when the step has no parts */
	int              errnum;
	int64_t          cpu_ns; /* that the cell has used since it joined its groups: the set-up's, not the program's */
	int64_t          cpu_before_ns; /* with CHILD_READY: for who shall say CHILD_EXECS in our place */
};

struct child_ctx {
	const struct mount_plan *mounts;
	int                      root_fd;  /* a detached mount of the rootfs */
	int                      shown_fd[MOUNT_SHOWN_MAX];
	const char              *hostname;
	int                      join_fd[GROUP_TREES_MAX]; /* v1 groups to join; the launcher's */
	int                      join_len;
	unsigned                 init_id, program_uid, program_gid; /* as seen inside; the same when there is only one */
	int                      report_fd; /* socket; also brings the word that the id maps are written, and the order */
	int                      launcher_fd[4]; /* the launcher's ends of its sockets: closed at once, or its death is not seen; -1: none */
	int                      init_fd;   /* memfd with brig-init */
	int                      status_fd; /* PID 1's end of the status socket */
	int                      slot_fd;
	int                      ready_fd[2]; /* PID 1 writes, the program reads */
	unsigned                 landlock_abi; /* 0: the kernel has none */
	bool                     workspace_exec;
	const struct sock_fprog *filter;
	int                      cell_pidfd; /* CHILD_ENTER: PID 1 of the cell */
	bool                     stays;      /* no exec: who has entered a cell goes on with what it has in memory */
	int                      extension_fd; /* CHILD_ZYGOTE: what its Python loads */
	uint32_t                 extension_len;

	/* what the steps are told and find out, on their side of the clone */
	struct child_order       order;
	struct word_lists        lists;
	bool                     is_warm; /* the program is a zygote's fork */
	int64_t                  cpu_before_ns; /* PID 1's, before it joined the groups that count it */
	int                      detail;
};

_Noreturn void child_run_cell(struct child_ctx *c);
_Noreturn void child_run_program(struct child_ctx *c);

/*
 * A fork of a zygote: into the cell, then the program's own table but for its exec. Returns when everything is given up
 * and the filter is on; after a failure, which it has told, it does not return.
 */
void child_become_program(struct child_ctx *c);
/* The place in which a zygote is executed. 0 or -errno; *step: which row failed. */
must_use int child_build_zygote(struct child_ctx *c, unsigned *step);

/* The parent's side: a failure as a sentence. */
int child_explain(const struct child_report *r, const struct child_ctx *c, struct err *e);

/* "3 mounts: ..." for brig explain and the manual: the names of the steps in order, NULL at the end. */
const char *child_step_name(enum child_table table, unsigned step);
const char *child_step_reason(enum child_table table, unsigned step);

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

/* In both tables: whoever executes something after them can gain nothing by it. */
int child_bounding_set(struct child_ctx *c);
int child_securebits(struct child_ctx *c);

/* In both ways to a program. Words: the sealed file becomes lists; groups: those of v1. */
int child_map_words(struct child_ctx *c);
int child_join_groups(struct child_ctx *c);
int child_take_ids(struct child_ctx *c);
int child_new_keyring(struct child_ctx *c);

/* Of a process of the cell, by its number in there. */
int64_t child_cpu_ns(pid_t pid);

/* For steps: the kernel's answer as 0 or -errno. */
int child_sys(long r);

/* Tells the launcher; a lost word means that nothing runs. */
int child_say(const struct child_ctx *c, enum child_word word, const int *fds, size_t n);
