/* keeper_parts.h - what the keeper knows, and the parts that it is made of */
#pragma once
#include "group.h"
#include "keeper_protocol.h"
#include "kept_cell.h"
#include "kept_proxy.h"
#include "profile_userns.h"
#include "rootless.h"
#include "store.h"

#include <time.h>

enum keeper_state { KEEPER_BEGINS, KEEPER_LEARNS, KEEPER_SERVES };

/*
 * FREE -> LEARNED -> SERVING -> RETIRED -> FREE
 *
 * LEARNED ones are used once they are sealed; RETIRED ones are gone with their last run.
 */
enum kept_profile_state { KEPT_PROFILE_FREE, KEPT_PROFILE_LEARNED, KEPT_PROFILE_SERVING, KEPT_PROFILE_RETIRED };

/* A profile as the reader sent it, and what the keeper holds for it. */
struct kept_profile {
	enum kept_profile_state state;
	bool                  is_told; /* since the last SERVE */
	struct keeper_profile plan;
	int                   filter_fd, trust_fd; /* trust_fd: -1, it has none */
	struct profile_userns   userns;
	struct kept_proxy       proxy;
	double                not_before, backoff; /* after failures to make cells ready; ms */
	struct store_tree     tree;
	struct timespec       named; /* when the name got that tree */
};
#define KEPT_PROFILE_NONE ((struct kept_profile){ .filter_fd = -1, .trust_fd = -1, .userns = PROFILE_USERNS_NONE, .proxy = KEPT_PROXY_NONE, .tree = STORE_TREE_NONE })

/* What the reader has sent since the last SERVE. */
struct kept_offer {
	uint32_t   number[KEEPER_PROFILES_MAX], n;
	bool       is_sealed;
	struct err refused; /* kind NONE: nothing was; what SEAL is answered with */
};

struct keeper {
	int                 door, reader, lock_fd;
	enum keeper_state   state;
	struct keeper_setup setup;
	struct rootless     rootless;
	struct id_range     ids;
	struct slot         own; /* USER: to lock with. SERVICE: its first id is group 0 of every profile */
	struct group_parent parent;
	int                 parent_watch; /* group_parent_watch(); -1: nothing changes it */
	struct kept_offer   offer;
	struct kept_profile kept[KEEPER_KEPT_PROFILES_MAX];
	uint32_t            kept_top; /* from here on they are free */
	struct share        share[KEEPER_KEPT_PROFILES_MAX];
	uint32_t            shares;
	struct kept_cell    cell[KEEPER_CELLS_MAX];
	size_t              top;          /* entries from here on are free, and skipped */
	uint32_t            reader_waits; /* messages of the door that were read while one of the reader waits */
	uint64_t            made;
};

/* keeper_complain.c: in the service's log */
void keeper_complain(const struct err *e);

/* keeper_rules.c: messages of the reader */
must_use int keeper_take_setup(struct keeper *k, const struct keeper_setup *setup, struct err *e);
/* fds: as its row says; those that are kept are taken. */
must_use int keeper_take_profile(struct keeper *k, const struct keeper_profile *plan, int *fds, struct err *e);
must_use int keeper_take_seal(struct keeper *k, uint64_t reading, struct err *e);
void         keeper_take_serve(struct keeper *k);
void         keeper_take_drop(struct keeper *k);
void         keeper_take_both(struct keeper *k); /* the new profiles serve beside the old ones */
/* A profile that the door may name. */
bool         keeper_is_served(const struct keeper *k, uint32_t number);
/* Profiles that are retired, and have no cell any more. */
void keeper_clear_retired(struct keeper *k);

/* keeper_cells.c: profiles at work, and cells that stand ready */
must_use int keeper_open_userns(struct keeper *k, uint32_t number, struct err *e);
/* Closes the cells that wait; one whose ticket is out, when the ticket comes back. */
void         keeper_drop_waiting(struct keeper *k, uint32_t number);
/* The rootfs as it is named now; cells with an older one are dropped. */
must_use int keeper_open_tree(struct keeper *k, uint32_t number, struct err *e);
/* NULL with *e when none can be had. run: the run that it is for, with the directories that it shows; NULL: it waits for any run. */
struct kept_cell *keeper_open_cell(struct keeper *k, uint32_t number, const struct keeper_run *run, const int *shown_fd,
				   struct err *e);
/* One that is free for this run, ready or else being built; NULL: none. */
struct kept_cell *keeper_find_waiting(struct keeper *k, const struct keeper_run *run);
/* Now, or later: the answer is in how many ms to look again. */
double       keeper_refill(struct keeper *k);
void         keeper_hear_cell(struct keeper *k, struct kept_cell *s);
void         keeper_hear_supervisor(struct kept_profile *p);
/* Of cells that are gone: true when nothing is left of any. */
bool         keeper_clean(struct keeper *k);

/* keeper_proxy.c: brig-proxy of each profile that has a network */
/* With the share of its ids. 0 where it has none, or is not due. */
must_use int keeper_open_proxy(struct keeper *k, uint32_t number, struct err *e);
/* It can be heard, which says that it is gone. */
void         keeper_hear_proxy(struct kept_profile *p);
/* Those that are due are started; when to look again (ms). */
double       keeper_tend_proxies(struct keeper *k);

/* keeper_ticket.c: cells that the door may use without us */
/* Of one that has just become ready. The descriptors are closed. */
void keeper_give_ticket(struct keeper *k, struct kept_cell *s, int fds[TICKET_FDS]);
/* The door is to close it, if it has one and has not used it. */
void keeper_recall_ticket(struct keeper *k, struct kept_cell *s);
/* The door sends it back with a run. Nothing happens if it was used, or the entry is another cell's by now. */
void keeper_take_ticket_back(struct keeper *k, const struct keeper_cell_id *which);
/* One of a pair of SOCK_SEQPACKET: what is sent over it, and our name with it, goes nowhere else. */
bool         keeper_is_pair(int fd);
bool         keeper_is_stream(int fd); /* the same, of bytes */

/* keeper_run.c */
void keeper_take_run(struct keeper *k, const struct keeper_run *run, const int *fds);

/* keeper_stats.c */
void keeper_answer_stats(struct keeper *k);
