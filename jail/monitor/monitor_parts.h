/* monitor_parts.h - what the monitor knows, and the parts that it is made of */
#pragma once
#include "cg.h"
#include "monitor_protocol.h"
#include "monitored_cell.h"
#include "monitored_proxy.h"
#include "profile_userns.h"
#include "rootless.h"
#include "store.h"

#include <time.h>

enum monitor_state { MONITOR_BEGINS, MONITOR_LEARNS, MONITOR_SERVES };

/*
 * FREE -> OFFERED -> SERVING -> RETIRED -> FREE
 *
 * A OFFERED profile is used after SEAL; a RETIRED one becomes FREE when its last cell is gone.
 */
enum monitored_profile_state { MONITORED_PROFILE_FREE, MONITORED_PROFILE_OFFERED, MONITORED_PROFILE_SERVING, MONITORED_PROFILE_RETIRED };

/* A profile as the reader sent it, and what the monitor holds for it. */
struct monitored_profile {
	enum monitored_profile_state state;
	bool                  is_offered; /* the reader has sent it since the last SERVE */
	struct monitor_profile plan;
	int                   filter_fd, trust_fd; /* trust_fd: -1, it has none */
	struct profile_userns   userns;
	struct monitored_proxy       proxy;
	double                not_before, backoff; /* ms: after a failure, when to build again, how long to wait */
	struct store_tree     tree;
	struct timespec       rootfs_since; /* when the name of the rootfs got that tree */
};
#define MONITORED_PROFILE_NONE ((struct monitored_profile){ .filter_fd = -1, .trust_fd = -1, .userns = PROFILE_USERNS_NONE, .proxy = MONITORED_PROXY_NONE, .tree = STORE_TREE_NONE })

/* What the reader has sent since the last SERVE. */
struct kept_offer {
	uint32_t   number[MONITOR_PROFILES_MAX], n;
	bool       is_sealed;
	struct err refused; /* why a profile was refused: the answer to SEAL; kind NONE: none was */
};

struct monitor {
	int                 server, reader, lock_fd;
	enum monitor_state   state;
	struct monitor_setup setup;
	struct rootless     rootless;
	struct id_range     ids;
	struct slot         own; /* USER: locked, for further locks, too. SERVICE: init_id is the host gid of P's group 0 */
	struct cg_parent parent;
	struct cg           proxies; /* of every brig-proxy (cg_limit_proxy_group()). USER: keeps the parent, too */
	int                 parent_watch; /* cg_parent_watch(); -1: no other process changes the parent */
	struct kept_offer   offer;
	struct monitored_profile kept[MONITOR_ALL_PROFILES_MAX];
	uint32_t            monitored_top; /* entries from here on are free */
	struct share        share[MONITOR_ALL_PROFILES_MAX];
	uint32_t            shares;
	struct monitored_cell    cell[MONITOR_CELLS_MAX];
	size_t              top;          /* entries from here on are free, and skipped */
	uint32_t            reader_waits; /* messages of the server read while one of the reader waited */
	uint64_t            made;
};

/* monitor_log_error.c: a line in the service's log */
void monitor_log_error(const struct err *e);

/* Carries a message out. fds: of monitor_protocol.h; those that it takes over become -1. -1 with *e: the monitor ends. */
typedef int monitor_fn(struct monitor *k, const struct monitor_message *m, int *fds, struct err *e);

/* monitor_rules.c: messages of the reader */
monitor_fn    monitor_handle_setup, monitor_handle_profile, monitor_handle_seal, monitor_handle_serve, monitor_handle_drop;
void         monitor_retire_offered_profiles(struct monitor *k);
void         monitor_serve_old_and_new_profiles(struct monitor *k); /* the new profiles serve beside the old ones */
/* A profile that the server may name. */
bool         monitor_is_profile_served(const struct monitor *k, uint32_t number);
/* Frees retired profiles that have no cell any more. */
void monitor_free_retired_profiles(struct monitor *k);

/* monitor_cells.c: profiles at work, and cells that stand ready */
must_use int monitor_start_supervisor(struct monitor *k, uint32_t number, struct err *e);
/* Ends the cells that wait for a run. One whose lease the server has ends when the lease comes back. */
void         monitor_drop_waiting_cells(struct monitor *k, uint32_t number);
/* Opens the tree that the rootfs has now. If it is a new one, waiting cells with the old tree are dropped. */
must_use int monitor_open_rootfs(struct monitor *k, uint32_t number, struct err *e);
/* NULL with *e on failure. run: what the cell is for; NULL: any. shown_fd: what run shows, then its socket for files. */
struct monitored_cell *monitor_open_cell(struct monitor *k, uint32_t number, const struct monitor_run *run, const int *shown_fd,
				   struct err *e);
/* A cell that may be given to this run: a ready one, else one that is being built; NULL: none. */
struct monitored_cell *monitor_find_waiting_cell(struct monitor *k, const struct monitor_run *run);
/* Builds missing ready cells when it is time for them. Returns in how many ms to call it again. */
double       monitor_refill_ready_cells(struct monitor *k);
void         monitor_receive_cell_message(struct monitor *k, struct monitored_cell *s);
void         monitor_handle_supervisor_exit(struct monitored_profile *p);
/* Cleans up after cells that are gone, and repeats recalls that the server did not get. True when all is done. */
bool         monitor_clean_up_cells(struct monitor *k);

/* monitor_proxy.c: brig-proxy of each profile that has a network */
/* The profile has its share of ids. 0 also when it has no network, or its brig-proxy runs. */
must_use int monitor_start_proxy(struct monitor *k, uint32_t number, struct err *e);
/* Its pidfd is readable: it has ended. */
void         monitor_handle_proxy_exit(struct monitored_profile *p);
/* Starts those that are due. Returns in how many ms to call it again. */
double       monitor_maintain_proxies(struct monitor *k);

/* monitor_lease.c: cells that the server may use without the monitor */
/* Sends the server the lease of a cell that has just become ready. Closes the descriptors. */
void monitor_send_lease(struct monitor *k, struct monitored_cell *s, int fds[LEASE_FDS]);
/* Asks the server to close the lease, if the server has it and has not used it. */
void monitor_recall_lease(struct monitor *k, struct monitored_cell *s);
/* The server gives the lease back with a run. Does nothing if the entry is not READY, or has another cell by now. */
void monitor_accept_returned_lease(struct monitor *k, const struct monitor_cell_id *which);
/* One end of a SOCK_SEQPACKET pair. A named server at the other end would get the monitor's credentials. */
bool         monitor_is_seqpacket_pair(int fd);
bool         monitor_is_stream_pair(int fd); /* the same for SOCK_STREAM */

/* monitor_run.c, monitor_stats.c: messages of the server */
monitor_fn monitor_handle_run, monitor_handle_stats;
