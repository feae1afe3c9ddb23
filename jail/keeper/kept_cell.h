/*
 * kept_cell.h - one cell as the keeper sees it: ids, control groups, a socket to its supervisor
 *
 *   FREE -> BUILDING -> READY -> TAKEN -> LEAVING -> FREE
 *              ^                             |
 *              +----------- RESTING <--------+
 *
 * An entry is opened ahead of any run, or for one; its cell is taken once. After a short run by ticket the supervisor builds
 * the next cell in its place, and says READY again; the keeper hears nothing else of that run. When the cell is gone and the groups are empty, these and the ids rest
 * for the next cell of the profile (group_renew()). Where the supervisor has not closed its
 * end of the socket - it may still kill what is in the groups - or where enough
 * rest already, the groups are removed as soon as they are empty.
 */
#pragma once
#include "group.h"
#include "keeper_protocol.h"
#include "launch.h"
#include "profile_userns.h"
#include "store.h"

enum kept_cell_state {
	KEPT_CELL_FREE,
	KEPT_CELL_BUILDING,
	KEPT_CELL_READY,
	KEPT_CELL_TAKEN,
	KEPT_CELL_LEAVING,
	KEPT_CELL_RESTING
};

struct kept_cell {
	enum kept_cell_state state;
	uint32_t             profile;
	bool                 plain;    /* of the profile's own sizes, and shows nothing: fits any run that is plain too */
	bool                 warm;     /* a zygote forks into it */
	int                  control;  /* to the supervisor, for this cell */
	bool                 ticketed; /* READY: the door has its ticket, and decides which run gets it */
	bool                 retires;  /* READY, ticketed: it leaves when the ticket is returned; no cell comes after it */
	bool                 recalled; /* the door was told so */
	uint64_t             generation; /* of the cells of this number */
	uint32_t             nth;        /* cell in this place, from 0 on; see LAUNCH_READY */
	bool                 is_next;    /* READY: with another cell than before */
	struct timespec      named;      /* when the name of its rootfs got the tree that it has */
	bool                 ended;      /* the supervisor has closed its end: it does nothing with the cell any more */
	double               since;      /* of this state: CLOCK_MONOTONIC ms */
	struct id_pool      *ids;        /* the pool of the slot; NULL: there is no slot */
	struct slot          slot;
	struct group         group;
};
#define KEPT_CELL_NONE ((struct kept_cell){ .control = -1, .slot.fd = -1 })

struct kept_cell_wishes {
	struct profile_userns     *userns;
	const struct group_parent *parent;
	const struct store_tree   *tree;
	struct timespec            named; /* since when the tree has its name */
	const struct limits       *limits;
	const struct keeper_run   *run;      /* what it shows; NULL: nothing */
	const int                 *shown_fd; /* then the socket for files, if the run has some */
	bool                       lends;    /* the supervisor has other ids than we */
	bool                       warm;     /* for a zygote's fork */
};

/* Of a cell that is FREE, or RESTING for this profile with renewed groups: the supervisor begins to build. On failure it is FREE, and nothing is left. */
must_use int kept_cell_open(struct kept_cell *s, uint32_t profile, const struct kept_cell_wishes *w, struct err *e);

enum kept_cell_answer { KEPT_CELL_TOOK_IT, KEPT_CELL_IS_GONE, KEPT_CELL_REFUSED };
/* Hands the run to the supervisor, with lower limits where it asks for some. GONE: the cell has ended; try another. */
must_use enum kept_cell_answer kept_cell_take(struct kept_cell *s, const struct keeper_run *run, const int *fds, struct err *e);

/*
 * What the supervisor said of the cell: false when it is gone. *e: why it failed, if it said so. When it has just become READY and
 * brings a ticket, *n is TICKET_FDS and the descriptors are the caller's; else it is 0.
 */
must_use bool kept_cell_hear(struct kept_cell *s, int fds[TICKET_FDS], size_t *n, struct err *e);

/* The cell is gone, or is to end: this closes the control socket, and the supervisor then kills it. */
void kept_cell_leave(struct kept_cell *s);
/* Of a cell that is LEAVING: true when it is FREE, or RESTING if may_rest. Kills processes that still live after a while. */
bool kept_cell_clean(struct kept_cell *s, bool may_rest);
