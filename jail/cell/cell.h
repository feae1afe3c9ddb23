/*
 * cell.h - one cell: ids, groups, namespaces, PID 1. Opened once, closed once.
 *
 * Everything that privilege is needed for happens between cell_open() and its
 * return, but for the program's way into the cell, which a fork server leads
 * (fork_server.h); what a cell is made of is decided before (jail/spec) and lies
 * in struct cell_order.
 */
#pragma once
#include "base_mounts.h"
#include "child.h"
#include "net.h"
#include "net_sockets.h"
#include "notice.h"
#include "rootless.h"
#include "cell_order.h"
#include "slot.h"
#include "store.h"
#include "warm.h"

/* True of every cell that this process builds. */
struct cell_base {
	bool     quotas;       /* /proc/sys/user can be written in a cell's user namespace */
	bool     no_groups;    /* the process that builds it has left its supplementary groups */
	unsigned landlock_abi; /* 0: none */
	int      init_fd;      /* memory file with brig-init, sealed; for as long as the process lives */
	struct base_mounts mounts;
};

struct cell {
	struct cell_base *base; /* borrowed */
	struct rootless   rootless;
	struct slot      slot;
	struct group     group;
	struct store_tree rootfs;   /* its lock keeps brig rootfs gc away */
	struct child_ctx child;
	int              user_ns_fd; /* of the slot (user_ns.h); -1: not made yet */
	int              pidfd;     /* PID 1; -1 when there is none (yet, or any more) */
	pid_t            pid;
	int              report_fd; /* child_report of PID 1, then a byte of brig-init, and nothing more is read; PID 1 ends with it */
	struct warm      warm;
	struct group_oom oom;       /* what tells that its memory is used up */
	struct net_place net;
	struct net_sockets sockets; /* in it */
	struct notice    notice;    /* of sockets of a network, and of refused calls; */
	bool             is_noticed; /* the program was started with a filter that tells of every one */
	uint64_t         layers, missing;
};

/* After failure of a call below cell_end() and cell_reap() are still to be called. */
void         cell_init(struct cell *c);

/* Part of cell_open(), if it was not done before: what is shown, opened anew as mounts (child.shown_fd). It may wait for a file system's server. */
must_use int cell_open_shown(struct cell *c, const struct cell_order *order, struct err *e);
/* Before cell_open(): the process leaves what its cells would inherit of its caller's, and looks at the kernel. Once for all of them. */
must_use int cell_begin(struct cell_base *ret, enum rootless_kind kind, struct err *e);
/* The caller has filled in slot, rootfs, rootless, and groups that have their limits. */
must_use int cell_open(struct cell *c, const struct cell_order *order, struct err *e);
/* What shall run, into the cell's order file, whenever it comes. */
must_use int cell_give_order_file(struct cell *c, const struct cell_order *order, bool executes, struct err *e);
/* PREPARED: a command finds no main.py. A fork that is asked for later has nothing to remove. The caller has the rights of the mounts' owner. */
must_use int cell_remove_code(struct cell *c, struct err *e);
/* The request for a fork with these limits, when the cell is prepared and PID 1 is hard. */
must_use int cell_ask(struct cell *c, const struct limits *l, struct err *e);

/* The whole tree, now. Harmless when it is dead already. */
void cell_kill(const struct cell *c);

/* Kills, and lets go of all but PID 1 (pidfd), the ids, the groups and the network. Counters must have been read before. */
void         cell_end(struct cell *c);
/* Then waits for PID 1, which takes the rest of the cell along, and removes every trace. -1 when something is left. */
must_use int cell_reap(struct cell *c, struct err *e);
/* A child of this process that is the cell's: it reaps that itself. */
bool         cell_has_child(const struct cell *c, pid_t pid);
/* No process of it ever had a socket of a network: with net_is_quiet(), now or later, it can be told from a new one by nothing. */
bool         cell_left_net_alone(const struct cell *c);
