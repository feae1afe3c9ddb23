/*
 * seat.h - one cell as the keeper sees it: ids, control groups, a socket to its supervisor
 *
 *   FREE -> BUILDING -> READY <-> TAKEN -> LEAVING -> FREE
 *              ^                              |
 *              +----------- RESTING <---------+
 *
 * A seat is opened ahead of any run, or for one; it is taken once. After a run that was over at once the supervisor builds the next
 * cell in its place, and it is READY again. When its
 * cell is gone and the groups are empty, these and the ids rest for the next
 * cell of the profile (group_renew()). Where the supervisor has not closed its
 * end of the socket - it may still kill what is in the groups - or where enough
 * rest already, the groups are removed as soon as they are empty.
 */
#pragma once
#include "keeper_protocol.h"
#include "group.h"
#include "launch.h"
#include "realm.h"
#include "store.h"

enum seat_state { SEAT_FREE, SEAT_BUILDING, SEAT_READY, SEAT_TAKEN, SEAT_LEAVING, SEAT_RESTING };

struct seat {
	enum seat_state state;
	uint32_t        profile;
	bool            plain;    /* of the profile's own sizes, and shows nothing: fits any run that is plain too */
	bool            warm;     /* a zygote forks into it: not for commands */
	int             control;  /* to the supervisor, for this cell */
	bool            ticketed; /* READY: the holder of its ticket decides which run gets it */
	double          leaves;   /* READY: its ticket was called in; when it leaves if no message about it comes; else 0 */
	uint64_t        generation; /* of the cells of this number */
	uint32_t        nth;      /* cell in this place, from 0 on; see LAUNCH_READY */
	bool            is_next;  /* READY: with another cell than before */
	struct timespec named;    /* when the name of its rootfs got the tree that it has */
	bool            ended;    /* the supervisor has closed its end: it does nothing with the cell any more */
	double          since;    /* of this state: CLOCK_MONOTONIC ms */
	struct id_pool *ids;      /* the pool of the slot; NULL: there is no slot */
	struct slot     slot;
	struct group    group;
};
#define SEAT_NONE ((struct seat){ .control = -1, .slot.fd = -1 })

struct seat_wishes {
	struct realm            *realm;
	const struct group_home *home;
	const struct store_tree *tree;
	struct timespec          named; /* since when the tree has its name */
	const struct limits     *limits;
	const struct keeper_run *run;   /* what it shows; NULL: nothing */
	const int               *shown_fd; /* then the socket for files, if the run has some */
	bool                     lends; /* the supervisor has other ids than we */
	bool                     warm;  /* for a zygote's fork */
};

/* Of a seat that is FREE, or RESTING for this profile with renewed groups: the supervisor begins to build. On failure it is FREE, and nothing is left. */
must_use int seat_open(struct seat *s, uint32_t profile, const struct seat_wishes *w, struct err *e);

enum seat_answer { SEAT_TOOK_IT, SEAT_IS_GONE, SEAT_REFUSED };
/* Hands the run to the supervisor, with lower limits where it asks for some. GONE: the cell has ended; try another. */
must_use enum seat_answer seat_take(struct seat *s, const struct keeper_run *run, const int *fds, struct err *e);

/*
 * What the supervisor said of the cell: false when it is gone. *e: why it failed, if it said so. When it has just become READY and
 * brings a ticket, *n is TICKET_FDS and the descriptors are the caller's; else it is 0.
 */
must_use bool seat_hear(struct seat *s, int fds[TICKET_FDS], size_t *n, struct err *e);

/* The cell is gone, or is to end: this closes the control socket, and the supervisor then kills it. */
void seat_leave(struct seat *s);
/* Of a seat that is LEAVING: true when it is FREE, or RESTING if may_rest. Kills processes that still live after a while. */
bool seat_clean(struct seat *s, bool may_rest);
