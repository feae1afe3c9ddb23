/*
 * cell.h - one cell: ids, groups, namespaces, PID 1. Opened once, closed once.
 *
 * Everything that needs privilege happens in cell_open(), except that a fork
 * server brings the program into the cell (fork_server.h). What a cell is made of
 * is decided before (jail/spec): struct cell_spec.
 */
#pragma once
#include "base_mounts.h"
#include "child.h"
#include "net.h"
#include "net_sockets.h"
#include "seccomp_notify.h"
#include "rootless.h"
#include "cell_spec.h"
#include "slot.h"
#include "store.h"
#include "warm.h"

/* What all cells that a process builds have in common. */
struct cell_base {
	bool     quotas;       /* /proc/sys/user can be written in a cell's user namespace */
	bool     no_groups;    /* the process has left its supplementary groups */
	unsigned landlock_abi; /* 0: none */
	int      init_fd;      /* sealed memory file with brig-init; open for as long as the process lives */
	struct base_mounts mounts;
};

struct cell {
	struct cell_base *base; /* borrowed */
	struct rootless   rootless;
	struct slot     slot;
	struct cg       group;
	struct store_tree rootfs;   /* its lock keeps brig rootfs gc away */
	struct child_ctx child;
	int              user_ns_fd; /* of the slot (user_ns.h); -1: not made yet */
	int              pidfd;     /* PID 1; -1 when there is none (yet, or any more) */
	pid_t            pid;
	int              report_fd; /* child_report of PID 1, a byte when brig-init is ready; its close ends PID 1 */
	struct warm      warm;
	struct cg_oom    oom;       /* tells that the memory of its group is used up */
	struct net_place net;
	struct net_sockets sockets;      /* in that network */
	struct seccomp_notify    notice; /* answers notices of network sockets and of refused calls */
	bool                     is_noticed; /* the filter sends notices: only then notice.socket_was_allowed counts */
	uint64_t                 layers, missing;
};

/* The caller has to call cell_kill_and_close() and cell_reap_and_release() even if one of the calls below fails. */
void         cell_init(struct cell *c);

/*
 * Opens detached mounts of what --ro shows, which may wait for a server of a file system. cell_open() does it if it was
 * not done before.
 */
must_use int cell_bind_shown_files(struct cell *c, const struct cell_spec *spec, struct err *e);
/* Once in a process, first: gives up what cells would inherit from its caller, and finds out what the kernel can do. */
must_use int cell_base_open(struct cell_base *ret, enum rootless_kind kind, struct err *e);
/* The caller has filled in base, slot, rootfs, rootless, net, and the group, whose limits are set. */
must_use int cell_open(struct cell *c, const struct cell_spec *spec, struct err *e);
/* Writes what is to run into the cell's order file, and its head to the fork's socket. rootfs: for messages. */
must_use int cell_deliver_spec(struct cell *c, const char *rootfs, const struct run_spec_head *head,
			    const struct run_spec_fds *fds, struct err *e);
/* From PREPARED on, for a command: removes main.py; a later fork does not. The caller may write to the mounts. */
must_use int cell_remove_code(struct cell *c, struct err *e);
/* Requests a fork with the limits of spec. The cell is PREPARED, and warm.init_is_confined is set. */
must_use int cell_request_fork(struct cell *c, const struct cell_spec *spec, struct err *e);

/* Kills every process of the cell. Harmless when they are dead already. */
void cell_kill(const struct cell *c);

/* Kills the cell, and closes all but pidfd, the ids, the groups and the network. Counters must have been read. */
void         cell_kill_and_close(struct cell *c);
/* Then waits for PID 1, which ends after every other process of the cell. */
void         cell_reap_init(struct cell *c);
/* The same, if that was not done; then removes the groups and frees the ids. -1 when something is left. */
must_use int cell_reap_and_release(struct cell *c, struct err *e);
/* True for a child of this process that the functions of the cell reap: other code must not. */
bool         cell_has_child(const struct cell *c, pid_t pid);
/* True: no process of the cell ever had a network socket. If net_is_unused(), too, the network is like a new one. */
bool         cell_network_is_unused(const struct cell *c);
