/*
 * monitor_protocol.h - messages to the monitor, which process sends them, and the replies
 *
 * Two SOCK_SEQPACKET sockets: MONITOR_FD leads to the server, MONITOR_RULES_FD to
 * the reader, a process that no client talks to. MONITOR_LOCK_FD holds the lock
 * on the monitor's ids, and is passed on to every cell; MONITOR_SUPERVISOR_FD and
 * MONITOR_PROXY_FD are the executables of supervisors and of brig-proxy. Each
 * datagram is one struct monitor_message, of exactly that size, with exactly the
 * descriptors that are named below; the table in monitor.c decides which process
 * may send it, and when. The monitor reads numbers and short names, never text of a
 * client, and trusts none of them: it checks again what the server has checked,
 * against what the reader sent.
 *
 * From the reader:
 *
 *   SETUP    once, first               no descriptor
 *   PROFILE  once for each profile     the filter: sealed, an array of struct sock_filter; if has_network, the
 *                                      configuration of brig-proxy (proxy_protocol.h), sealed, which the monitor does not
 *                                      read; if has_trust, the certificates for programs: sealed, PEM
 *   SEAL     all profiles were sent    none; answered with their numbers
 *   SERVE    after SEAL                none: the server knows the numbers; profiles that were not sent again are retired
 *   DROP     instead of SERVE          none: what was sent since the last SERVE is discarded
 *
 * From the server, after the first SEAL:
 *
 *   RUN                                the run's client (a socket), the arguments, the program if code_len,
 *                                      the program's end of the socket to its tools if it
 *                                      has some; then the directories to show, then the
 *                                      socket for files if it has some
 *   STATS                              none; answered
 *
 * A profile that is sent again unchanged, with the same filter, keeps its number
 * and its cells. Any other gets a number of its own: a RUN with the old number
 * gets the old profile, until SERVE. Messages that the server sent before SERVE are
 * read before it; runs of a retired profile go on to their end, and then its
 * number is free.
 *
 * The monitor answers SEAL to the reader and STATS to the server. It also sends to
 * the server, unasked:
 *
 *   LEASE    for a cell that is ready  as in run_spec.h, LEASE_FDS of them
 *   RECALL   a lease is void           none; a server that has the lease closes it
 *   PROXY    a profile has a new       its socket (proxy_protocol.h)
 *            brig-proxy: sent before SEAL is answered, and whenever another one was started
 *
 * A lease is the right to use one cell once, for a run within its profile's own limits, without
 * asking the monitor. The monitor gives a cell whose lease is out to no other run, unless the server
 * names the cell in a RUN: the server decides. The supervisor of the cell tells the monitor
 * what becomes of the lease: closed unused, or used for a run that lasts (run_spec.h). All that a server can get by
 * lying about leases is the cells that the monitor had opened for it.
 *
 * A message of another size, kind, order or number of descriptors comes from a
 * broken process: the monitor reports it on stderr and ends, and every run with it. A
 * RUN that asks for more than its profile allows is refused on the run's own
 * socket (LAUNCH_ENDED, reason denied); one that cannot be started gets its reason there, too.
 *
 * End of file on the server's socket ends the monitor: the server has died, or asks the
 * monitor to end. On the reader's it means that no other profiles will come.
 */
#pragma once
#include "id_range.h"
#include "run_spec.h"
#include "limits.h"
#include "mount_plan.h"
#include "paths.h"
#include "supervisor_protocol.h"
#include "zygote_report.h"

enum {
	MONITOR_FD            = 3,
	MONITOR_LOCK_FD       = 4,
	MONITOR_RULES_FD      = 5,
	MONITOR_SUPERVISOR_FD = 6,
	MONITOR_PROXY_FD      = 7,
	MONITOR_FDS_END,
	MONITOR_PROFILES_MAX     = 64,                       /* that the reader may send at once */
	MONITOR_ALL_PROFILES_MAX = 2 * MONITOR_PROFILES_MAX, /* with retired ones: numbers are below it */
	MONITOR_READY_MAX        = 64,
};
enum {
	MONITOR_ID_LEAST  = 65536, /* smaller ids may be those of accounts */
	MONITOR_IDS_LEAST = (ID_SLOTS_RESERVED + 2 * MONITOR_PROFILES_MAX) * IDS_PER_CELL, /* a root and a cell each */
};
enum { MONITOR_TRUST_MAX = 64 * 1024, MONITOR_PROXY_DIGEST = 65 };

enum monitor_kind {
	MONITOR_SETUP = 1, MONITOR_PROFILE, MONITOR_SEAL, MONITOR_SERVE, MONITOR_DROP, /* from the reader */
	MONITOR_RUN, MONITOR_STATS, /* from the server */
	MONITOR_LEASE, MONITOR_RECALL, MONITOR_PROXY,
};

enum monitor_mode {
	MONITOR_SERVICE, /* an account of its own, with CAP_SETUID and CAP_SETGID: makes a user namespace per profile */
	MONITOR_USER,    /* a plain user's: one namespace, as newuidmap allows it */
};

struct monitor_setup {
	uint32_t mode;
	uint32_t id_base, id_count; /* SERVICE: host ids for this service alone; the last slots are not for cells */
	char     store[2][PATH_SIZE], runtime[PATH_SIZE];
};

struct monitor_profile {
	char          name[MONITOR_NAME_MAX], rootfs[MONITOR_NAME_MAX]; /* name: for messages */
	struct limits limits, ceilings;
	uint32_t      workspace_exec, require_all;
	uint32_t      ready; /* cells that stand ready */
	uint32_t      warm;  /* a zygote forks into them */
	uint32_t      zygote_cells, zygote_ms; /* one zygote serves so many cells, and so long (ms), at most */
	char          preload[MONITOR_PRELOAD_MAX]; /* modules that the zygote imports: names between commas */
	uint32_t             has_network; /* its cells listen for a brig-proxy, which is started */
	struct net_listeners listeners;
	uint32_t             has_trust;   /* 0 or 1, and only with a network */
	char                 proxy_digest[MONITOR_PROXY_DIGEST]; /* of both files, without what each reading makes anew */
};

/* A cell: an entry of the monitor, and which of the cells that it has had. */
struct monitor_cell_id {
	uint64_t number; /* MONITOR_ANY_CELL: the monitor chooses */
	uint64_t generation;
};
enum { MONITOR_ANY_CELL = MONITOR_CELLS_MAX };

struct monitor_run {
	uint32_t               profile;
	struct monitor_cell_id cell;  /* the cell whose lease the server gives back with this */
	struct run_spec        order; /* goes on to the supervisor */
	uint32_t               shown_len;
	char                   shown[MOUNT_SHOWN_MAX][SHOWN_NAME_MAX]; /* below /workspace */
	uint32_t               files, terminals; /* 0 or 1 */
};

struct monitor_message {
	uint32_t kind; /* enum monitor_kind */
	union {
		struct monitor_setup   setup;
		struct monitor_profile profile;
		struct monitor_run     run;
		uint64_t               reading; /* SEAL: a number that the answer repeats */
	};
};

struct monitor_stats {
	uint32_t ready[MONITOR_ALL_PROFILES_MAX], building[MONITOR_ALL_PROFILES_MAX], running[MONITOR_ALL_PROFILES_MAX];
	struct zygote_report zygote[MONITOR_ALL_PROFILES_MAX]; /* as the supervisors wrote it */
	uint64_t made;   /* cells since the start */
	uint64_t cpu_us; /* of the monitor itself */
	uint64_t memory_bytes;
};

/* LEASE and RECALL. */
struct monitor_lease {
	uint32_t           kind, profile;
	struct monitor_cell_id cell;
	int64_t            rootfs_since_s, rootfs_since_ns; /* when the name of its rootfs got the tree that it has */
	uint64_t           missing;           /* layers that its control groups do not give */
};

/* PROXY, with its socket. */
struct monitor_proxy {
	uint32_t kind, profile;
};

/* To SEAL and STATS. */
struct monitor_answer {
	uint32_t   kind;
	struct err err; /* SEAL: kind NONE when runs may be sent */
	union {
		struct monitor_stats stats;
		struct {
			uint64_t reading;
			uint32_t number[MONITOR_PROFILES_MAX]; /* of the profiles, in the order in which they came */
		} seal;
	};
};
