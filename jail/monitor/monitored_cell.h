/*
 * monitored_cell.h - one cell as the monitor sees it: ids, control groups, a socket to its supervisor
 *
 *   FREE -> BUILDING -> READY -> TAKEN -> LEAVING -> FREE
 *              ^                   |
 *              +----- RESTING <----+
 *
 * An entry is opened ahead of any run, or for one; its cell is taken once. After a short run by lease the supervisor
 * builds the next cell in the same place and sends READY again; the monitor receives nothing else of that run. After
 * any other run that left no process the place rests: the supervisor keeps its descriptors and the slot's user
 * namespace, the monitor its ids and groups, until the next cell of the profile is built in it. If enough entries rest
 * already, or the run left something, the groups are removed as soon as they are empty, and the ids are given back.
 */
#pragma once
#include "cg.h"
#include "monitor_protocol.h"
#include "run_spec.h"
#include "profile_userns.h"
#include "store.h"

enum monitored_cell_state {
	MONITORED_CELL_FREE,
	MONITORED_CELL_BUILDING,
	MONITORED_CELL_READY,
	MONITORED_CELL_TAKEN,
	MONITORED_CELL_LEAVING,
	MONITORED_CELL_RESTING
};

struct monitored_cell {
	enum monitored_cell_state state;
	uint32_t                  profile;
	bool                      is_for_any_run; /* built ahead with the profile's limits; shows nothing */
	bool                      warm;     /* a zygote forks into it */
	int                       control;  /* socket to the supervisor, for this cell alone */
	bool                      lease_is_out; /* READY: the server has its lease, and decides which run gets it */
	bool                      leaves_after_lease; /* READY: leaves when the lease is returned, without a next cell */
	bool                      recall_was_sent; /* RECALL was sent to the server */
	uint64_t                  generation; /* tells the cells that have been in this entry apart */
	uint32_t                  cells_before; /* cells that were in this place before; as number of LAUNCH_READY */
	bool                      ready_is_next_cell; /* the last READY was that of the next cell in the place */
	struct timespec           rootfs_since; /* when the name of the rootfs got the tree that the cell has */
	double                    since;      /* CLOCK_MONOTONIC ms: when this state began */
	struct id_pool           *ids;        /* the pool of the slot; NULL: there is no slot */
	struct slot               slot;
	struct cg                 group;
};
#define MONITORED_CELL_NONE ((struct monitored_cell){ .control = -1, .slot.fd = -1 })

struct monitored_cell_options {
	struct profile_userns    *userns;
	const struct cg_parent   *parent;
	const struct store_tree  *tree;
	struct timespec           rootfs_since; /* as in monitored_cell */
	const struct limits      *limits;
	const struct monitor_run *run;      /* the run that the cell is for; NULL: it waits for any */
	const int                *shown_fd; /* what run shows, then its socket for files if it has one */
	bool                      lends;    /* the supervisor has other ids: the groups are lent to it */
	bool                      warm;     /* for a zygote's fork */
	bool                      leaves_are_new;
};

/*
 * s is FREE, or RESTING for this profile with renewed groups; w->leaves_are_new: the supervisor does not have them. The
 * supervisor begins to build. After a failure s is FREE, or LEAVING if it was RESTING.
 */
must_use int monitored_cell_open(struct monitored_cell *s, uint32_t profile, const struct monitored_cell_options *w, struct err *e);

enum monitored_cell_answer { MONITORED_CELL_TOOK_IT, MONITORED_CELL_IS_GONE, MONITORED_CELL_REFUSED };
/* Sets the groups to the limits of the run, and sends its spec to the supervisor. GONE: that failed; try another cell. */
must_use enum monitored_cell_answer monitored_cell_assign_run(struct monitored_cell *s, const struct monitor_run *run, const int *fds, struct err *e);

/*
 * Reads one message of the supervisor. False: the cell is gone. *e: why the cell failed, if the message says so; else
 * kind NONE. If the cell has become READY with a lease, *n is LEASE_FDS and the caller owns the descriptors; else *n
 * is 0.
 */
must_use bool monitored_cell_receive_message(struct monitored_cell *s, int fds[LEASE_FDS], size_t *n, struct err *e);

/* The cell is gone, or is to end: closes the control socket, upon which the supervisor kills the cell. */
void monitored_cell_close_control(struct monitored_cell *s);
/* s is LEAVING. True when it has become FREE. Kills processes that still live after a while. */
bool monitored_cell_clean_up(struct monitored_cell *s);
