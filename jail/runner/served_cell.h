/*
 * served_cell.h - one cell of a supervisor, from the monitor's message to its last trace
 *
 *   (OPENS) -> LIVES -> (AWAITS) -> DIES -> (SENDS) -> gone, or RESTS -> (OPENS) -> LIVES
 *
 * OPENS: a helper process opens what --ro shows, because a file system that does not answer would make this process
 * wait. LIVES: the watch (runner.h) has its turns. AWAITS: the cell has failed before its order came; the order
 * brings the socket on which the reason is sent. DIES: PID 1 was killed, and its end is waited for. SENDS: files for
 * the client are being sent (files.h). RESTS: nothing is left of the cell but its place: ids, user namespace, groups
 * and their descriptors; the monitor asks for the next cell in it.
 */
#pragma once
#include "net_pool.h"
#include "supervisor_protocol.h"
#include "runner.h"

/* What all cells of a profile share, or what the one cell of a launcher has. */
struct cell_kind {
	const struct supervisor_setup *setup;
	const struct sock_fprog       *filter, *notifying; /* as in cell_spec */
	struct net_pool                nets;
	struct cell_base               base;
	struct err                     unfit; /* why no cell can be built; kind NONE: they can */
	struct forker                  forker;
};

/* A place for cells, one after the other: what the monitor has given for it, and what was made for its first cell. */
struct cell_resources {
	int               control;
	struct slot       slot;
	int               user_ns_fd; /* of the slot, made with its first cell; else -1 */
	struct store_tree rootfs;
	struct cg         group;
	struct cg_oom     oom;        /* watched with the first cell */
	struct limits     limits;
};

#define CELL_RESOURCES_NONE ((struct cell_resources){ .control = -1, .slot.fd = -1, .user_ns_fd = -1, .rootfs = STORE_TREE_NONE, .oom = CG_OOM_NONE })

struct served_cell {
	enum { CELL_OPENS, CELL_LIVES, CELL_AWAITS, CELL_DIES, CELL_SENDS, CELL_RESTS } state;
	bool              is_left; /* LAUNCH_ENDED was sent before PID 1 was reaped */
	double            wake;    /* CLOCK_MONOTONIC ms: when it needs a turn, even without an event */
	struct runner     watch;
	struct mount_plan mounts;
	struct cell_resources resources; /* while there is no cell in it, and is_kept */
	bool              is_kept, follows_at_once;
	uint32_t          cells_before; /* how many cells were in the place before */
	bool              may_follow; /* a next cell may come into its place without the monitor */
	bool              has_code, is_warm, terminals; /* as in supervisor_cell */
	struct cg_files files;
	size_t            shown_len;
	char              shown[MOUNT_SHOWN_MAX][SHOWN_TO_MAX];
	const char       *shown_to[MOUNT_SHOWN_MAX];
	int               shown_fd[MOUNT_SHOWN_MAX];
	int               files_fd;  /* the client's socket for files, until the cell is built; -1 */
	int               opening;   /* OPENS: socket to the helper, the process below */
	pid_t             helper;
};

/* From the monitor's message. Returns how many of fds were taken over; the others are for served_cell_open(). */
must_use size_t cell_resources_from_message(struct cell_resources *ret, const struct supervisor_cell *message, const int *fds);
/*
 * Takes over the place, and as many descriptors as the message names: those of what is shown, then the socket for
 * files. Reads only warm, awaited, and the members behind leaf of the message. NULL: out of memory; all descriptors
 * are closed.
 */
struct served_cell *served_cell_open(struct cell_kind *kind, const struct cell_resources *resources,
				     const struct supervisor_cell *message, const int *fds, const struct zygote_status *zygote);

/* What to poll for; entries with fd -1 are unused. Sets ->wake. */
void served_cell_fill_pollfds(struct served_cell *c, struct pollfd fds[RUNNER_FDS]);

enum served_turn {
	SERVED_CELL_LIVES,
	SERVED_CELL_MAY_FOLLOW, /* gone, its place is kept: call served_cell_build_next() or served_cell_free() */
	SERVED_CELL_IS_WANTED,  /* RESTS: a message is at resources.control: call served_cell_reuse() or served_cell_free() */
	SERVED_CELL_IS_GONE,  /* it is freed */
};
/* After served_cell_fill_pollfds() and poll(). */
must_use enum served_turn served_cell_handle_events(struct served_cell *c, struct cell_kind *kind, const struct pollfd fds[RUNNER_FDS]);
/* Builds the next cell in the place, like the one before. Where its groups cannot be reset, it rests. False: c is freed. */
must_use bool served_cell_build_next(struct served_cell *c, struct cell_kind *kind, const struct zygote_status *zygote);
/* RESTS: builds the cell of this message. fds: leaves of groups if it has some, then as for served_cell_open(). */
void served_cell_reuse(struct served_cell *c, struct cell_kind *kind, const struct supervisor_cell *message, const int *fds,
		       const struct zygote_status *zygote);
void served_cell_free(struct served_cell *c);
