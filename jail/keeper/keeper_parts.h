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
 * FREE -> OFFERED -> SERVING -> RETIRED -> FREE
 *
 * A OFFERED profile is used after SEAL; a RETIRED one becomes FREE when its last cell is gone.
 */
enum kept_profile_state { KEPT_PROFILE_FREE, KEPT_PROFILE_OFFERED, KEPT_PROFILE_SERVING, KEPT_PROFILE_RETIRED };

/* A profile as the reader sent it, and what the keeper holds for it. */
struct kept_profile {
	enum kept_profile_state state;
	bool                  is_offered; /* the reader has sent it since the last SERVE */
	struct keeper_profile plan;
	int                   filter_fd, trust_fd; /* trust_fd: -1, it has none */
	struct profile_userns   userns;
	struct kept_proxy       proxy;
	double                not_before, backoff; /* ms: when to build ready cells again after a failure, how long to wait */
	struct store_tree     tree;
	struct timespec       rootfs_since; /* when the name of the rootfs got that tree */
};
#define KEPT_PROFILE_NONE ((struct kept_profile){ .filter_fd = -1, .trust_fd = -1, .userns = PROFILE_USERNS_NONE, .proxy = KEPT_PROXY_NONE, .tree = STORE_TREE_NONE })

/* What the reader has sent since the last SERVE. */
struct kept_offer {
	uint32_t   number[KEEPER_PROFILES_MAX], n;
	bool       is_sealed;
	struct err refused; /* why a profile was refused: the answer to SEAL; kind NONE: none was */
};

struct keeper {
	int                 door, reader, lock_fd;
	enum keeper_state   state;
	struct keeper_setup setup;
	struct rootless     rootless;
	struct id_range     ids;
	struct slot         own; /* USER: locked; its descriptor takes further locks. SERVICE: init_id is the host gid of group 0 in every P */
	struct group_parent parent;
	struct group        place; /* of every brig-proxy (group_limit_proxies()). USER: no other run of this user finds the parent empty meanwhile, and removes it */
	int                 parent_watch; /* group_parent_watch(); -1: no other process changes the parent */
	struct kept_offer   offer;
	struct kept_profile kept[KEEPER_KEPT_PROFILES_MAX];
	uint32_t            kept_top; /* entries from here on are free */
	struct share        share[KEEPER_KEPT_PROFILES_MAX];
	uint32_t            shares;
	struct kept_cell    cell[KEEPER_CELLS_MAX];
	size_t              top;          /* entries from here on are free, and skipped */
	uint32_t            reader_waits; /* messages of the door that were read while one of the reader was waiting */
	uint64_t            made;
};

/* keeper_complain.c: a line in the service's log */
void keeper_complain(const struct err *e);

/* Carries a message out. fds: as keeper_protocol.h lists them; -1 in place of those that were taken over. -1 with *e: the keeper must end. */
typedef int keeper_fn(struct keeper *k, const struct keeper_message *m, int *fds, struct err *e);

/* keeper_rules.c: messages of the reader */
keeper_fn    keeper_take_setup, keeper_take_profile, keeper_take_seal, keeper_take_serve, keeper_take_drop;
void         keeper_drop_offer(struct keeper *k);
void         keeper_take_both(struct keeper *k); /* the new profiles serve beside the old ones */
/* A profile that the door may name. */
bool         keeper_is_served(const struct keeper *k, uint32_t number);
/* Frees retired profiles that have no cell any more. */
void keeper_clear_retired(struct keeper *k);

/* keeper_cells.c: profiles at work, and cells that stand ready */
must_use int keeper_open_userns(struct keeper *k, uint32_t number, struct err *e);
/* Ends the cells that wait for a run. One whose ticket the door has ends when the ticket comes back. */
void         keeper_drop_waiting(struct keeper *k, uint32_t number);
/* Opens the tree to which the name of the rootfs leads now. If it is a new one, waiting cells with the old tree are dropped. */
must_use int keeper_open_tree(struct keeper *k, uint32_t number, struct err *e);
/* NULL with *e on failure. run: the run that the cell is for; NULL: it waits for any run. shown_fd: what run shows, then its socket for files. */
struct kept_cell *keeper_open_cell(struct keeper *k, uint32_t number, const struct keeper_run *run, const int *shown_fd,
				   struct err *e);
/* A cell that may be given to this run: a ready one, else one that is being built; NULL: none. */
struct kept_cell *keeper_find_waiting(struct keeper *k, const struct keeper_run *run);
/* Builds missing ready cells when it is time for them. Returns in how many ms to call it again. */
double       keeper_refill(struct keeper *k);
void         keeper_receive_cell(struct keeper *k, struct kept_cell *s);
void         keeper_on_supervisor_end(struct kept_profile *p);
/* Cleans up after cells that are gone, and repeats recalls that the door did not get. True when nothing of this is left to do. */
bool         keeper_clean(struct keeper *k);

/* keeper_proxy.c: brig-proxy of each profile that has a network */
/* The profile has its share of ids. 0 also when it has no network, or its brig-proxy runs. */
must_use int keeper_open_proxy(struct keeper *k, uint32_t number, struct err *e);
/* Its pidfd is readable: it has ended. */
void         keeper_on_proxy_end(struct kept_profile *p);
/* Starts those that are due. Returns in how many ms to call it again. */
double       keeper_tend_proxies(struct keeper *k);

/* keeper_ticket.c: cells that the door may use without the keeper */
/* Sends the door the ticket of a cell that has just become ready. Closes the descriptors. */
void keeper_give_ticket(struct keeper *k, struct kept_cell *s, int fds[TICKET_FDS]);
/* Asks the door to close the ticket, if the door has it and has not used it. */
void keeper_recall_ticket(struct keeper *k, struct kept_cell *s);
/* The door gives the ticket back with a run. Does nothing if the entry is not READY, or has another cell by now. */
void keeper_take_ticket_back(struct keeper *k, const struct keeper_cell_id *which);
/* One end of a socketpair() of SOCK_SEQPACKET. A named server at the other end would get a message with the keeper's credentials. */
bool         keeper_is_pair(int fd);
bool         keeper_is_stream(int fd); /* the same for SOCK_STREAM */

/* keeper_run.c, keeper_stats.c: messages of the door */
keeper_fn keeper_take_run, keeper_answer_stats;
