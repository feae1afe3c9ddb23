/*
 * served_cell.h - one cell of a supervisor, from the keeper's message to its last trace
 *
 *   (OPENS) -> LIVES -> (AWAITS) -> DIES -> (SENDS) -> gone
 *
 * OPENS: what the run is shown is opened by a helper process, because a file system whose server does not answer makes that wait.
 * LIVES: a watch (watch.h), which is given its turns here and waits nowhere. AWAITS: the cell has failed sooner than the run
 * that it was built for has asked for it; the reason is told on the socket that comes with the order. DIES: PID 1 is killed,
 * and waited for. SENDS: what the program has left for its client is on its way (files.h).
 */
#pragma once
#include "net_pool.h"
#include "supervisor_protocol.h"
#include "watch.h"

/* What all cells of a profile share. */
struct cell_kind {
	const struct supervisor_setup *setup;
	const struct sock_fprog       *filter, *notifying; /* as in cell_order */
	struct net_pool                nets;
	struct cell_base               base;
	struct err                     unfit; /* why no cell can be built; kind NONE: they can */
	struct forker                  forker;
};

/* What the keeper has given for a cell, and what outlives the cell if the next one is built in its place. */
struct cell_place {
	int               control;
	struct slot       slot;
	int               user_ns_fd; /* of the slot, made with its first cell; else -1 */
	struct store_tree rootfs;
	struct group      group;
	struct group_oom  oom;        /* watched with the first cell */
	struct limits     limits;
};

#define CELL_PLACE_NONE ((struct cell_place){ .control = -1, .slot.fd = -1, .user_ns_fd = -1, .rootfs = STORE_TREE_NONE, .oom = GROUP_OOM_NONE })

struct served_cell {
	enum { CELL_OPENS, CELL_LIVES, CELL_AWAITS, CELL_DIES, CELL_SENDS } state;
	bool              is_left; /* its end was told before it was gone */
	double            wake;    /* CLOCK_MONOTONIC ms: when it wants a turn, whatever can be read */
	struct watch      watch;
	struct mount_plan mounts;
	struct cell_place place;   /* of the cell, while there is one; else its own, if */
	bool              is_kept;
	uint32_t          nth;     /* cell in it */
	bool              may_stay; /* a next cell may come into its place */
	bool              has_code, is_warm, terminals; /* as in supervisor_cell */
	struct group_files files;
	size_t            shown_len;
	char              shown[MOUNT_SHOWN_MAX][SHOWN_NAME_MAX + 16];
	const char       *shown_to[MOUNT_SHOWN_MAX];
	int               shown_fd[MOUNT_SHOWN_MAX];
	int               files_fd;  /* until the cell is built; -1 */
	int               opening;   /* OPENS: socket to the helper, which is */
	pid_t             helper;
};

/* As the keeper sends it: as many descriptors of fds as the message says are the place's. The rest follow. */
must_use size_t cell_place_receive(struct cell_place *ret, const struct supervisor_cell *message, const int *fds);
/*
 * Takes over the place, and as many descriptors as the message says: of what is shown, then the socket for files. NULL: out of memory.
 * of the message only what follows `leaf`, and warm and awaited, are read.
 */
struct served_cell *served_cell_open(struct cell_kind *kind, const struct cell_place *place, const struct supervisor_cell *message, const int *fds,
				     const struct zygote_place *zygote);

/* What is to be waited for; entries whose fd is -1 are none. Sets ->wake. */
void served_cell_fds(struct served_cell *c, struct pollfd fds[WATCH_FDS]);

enum served_turn {
	SERVED_CELL_LIVES,
	SERVED_CELL_MAY_COME, /* it is gone, and its ids and groups are here: served_cell_again() or served_cell_free() */
	SERVED_CELL_IS_GONE,  /* it is freed */
};
/* After served_cell_fds() and poll(). */
must_use enum served_turn served_cell_hear(struct served_cell *c, struct cell_kind *kind, const struct pollfd fds[WATCH_FDS]);
/* The next cell, of the profile's own sizes. False: its groups are not as they were; it is freed, and the keeper sees the end of the control socket. */
must_use bool served_cell_again(struct served_cell *c, struct cell_kind *kind, const struct zygote_place *zygote);
void served_cell_free(struct served_cell *c);
