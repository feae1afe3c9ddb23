/*
 * keeper_protocol.h - messages to the keeper, which process sends them, and the replies
 *
 * Two SOCK_SEQPACKET sockets: KEEPER_FD leads to the door, KEEPER_RULES_FD to
 * the reader, a process that no client talks to. KEEPER_LOCK_FD holds the lock
 * on the keeper's ids, and is passed on to every cell; KEEPER_SUPERVISOR_FD and
 * KEEPER_PROXY_FD are the executables of supervisors and of brig-proxy. Each
 * datagram is one struct keeper_message, of exactly that size, with exactly the
 * descriptors that are named below; the table in keeper.c decides which process
 * may send it, and when. The keeper reads numbers and short names, never text of a
 * client, and trusts none of them: it checks again what the door has checked,
 * against what the reader sent.
 *
 * From the reader:
 *
 *   SETUP    once, first               no descriptor
 *   PROFILE  once for each profile     the filter: sealed, an array of struct sock_filter; if has_network, the
 *                                      configuration of brig-proxy (proxy_protocol.h), sealed, which the keeper does not
 *                                      read; if has_trust, the certificates for programs: sealed, PEM
 *   SEAL     all profiles were sent    none; answered with their numbers
 *   SERVE    after SEAL                none: the door knows the numbers; profiles that were not sent again are retired
 *   DROP     instead of SERVE          none: what was sent since the last SERVE is discarded
 *
 * From the door, after the first SEAL:
 *
 *   RUN                                the run's client (a socket), the arguments, the program if code_len,
 *                                      the program's end of the socket to its tools if it
 *                                      has some; then the directories to show, then the
 *                                      socket for files if it has some
 *   STATS                              none; answered
 *
 * A profile that is sent again unchanged, with the same filter, keeps its number
 * and its cells. Any other gets a number of its own: a RUN with the old number
 * gets the old profile, until SERVE. Messages that the door sent before SERVE are
 * read before it; runs of a retired profile go on to their end, and then its
 * number is free.
 *
 * The keeper answers SEAL to the reader and STATS to the door. It also sends to
 * the door, unasked:
 *
 *   TICKET   for a cell that is ready  as in launch.h, TICKET_FDS of them
 *   RECALL   a ticket is void          none; a door that has the ticket closes it
 *   PROXY    a profile has a new       its socket (proxy_protocol.h)
 *            brig-proxy: sent before SEAL is answered, and whenever another one was started
 *
 * A ticket is the right to use one cell once, for a run within its profile's own limits, without
 * asking the keeper. The keeper gives a cell whose ticket is out to no other run, unless the door
 * names the cell in a RUN: the door decides. The supervisor of the cell tells the keeper
 * what becomes of the ticket: closed unused, or used for a run that lasts (launch.h). All that a door can get by
 * lying about tickets is the cells that the keeper had opened for it.
 *
 * A message of another size, kind, order or number of descriptors comes from a
 * broken process: the keeper says so on stderr and ends, and every run with it. A
 * RUN that asks for more than its profile allows is refused on the run's own
 * socket (LAUNCH_ENDED, reason denied); one that cannot be started gets its reason there, too.
 *
 * End of file on the door's socket ends the keeper: the door has died, or asks the
 * keeper to end. On the reader's it means that no other profiles will come.
 */
#pragma once
#include "id_range.h"
#include "launch.h"
#include "limits.h"
#include "mount_plan.h"
#include "place.h"
#include "supervisor_protocol.h"
#include "zygote_report.h"

enum {
	KEEPER_FD            = 3,
	KEEPER_LOCK_FD       = 4,
	KEEPER_RULES_FD      = 5,
	KEEPER_SUPERVISOR_FD = 6,
	KEEPER_PROXY_FD      = 7,
	KEEPER_FDS_END,
	KEEPER_PROFILES_MAX      = 64,                      /* that the reader may send at once */
	KEEPER_KEPT_PROFILES_MAX = 2 * KEEPER_PROFILES_MAX, /* with retired ones: numbers are below it */
	KEEPER_READY_MAX         = 64,
};
enum {
	KEEPER_ID_LEAST  = 65536, /* smaller ids may be those of accounts */
	KEEPER_IDS_LEAST = (ID_SLOTS_RESERVED + 2 * KEEPER_PROFILES_MAX) * IDS_PER_CELL, /* each profile has its root and a cell */
};
enum { KEEPER_TRUST_MAX = 64 * 1024, KEEPER_PROXY_DIGEST = 65 };

enum keeper_kind {
	KEEPER_SETUP = 1, KEEPER_PROFILE, KEEPER_SEAL, KEEPER_SERVE, KEEPER_DROP, /* from the reader */
	KEEPER_RUN, KEEPER_STATS, /* from the door */
	KEEPER_TICKET, KEEPER_RECALL, KEEPER_PROXY,
};

enum keeper_mode {
	KEEPER_SERVICE, /* an account of its own, with CAP_SETUID and CAP_SETGID: makes a user namespace per profile */
	KEEPER_USER,    /* a plain user's: one namespace, as newuidmap allows it */
};

struct keeper_setup {
	uint32_t mode;
	uint32_t id_base, id_count; /* SERVICE: host ids for this service alone; the last slots are not for cells */
	char     store[2][PLACE_MAX], runtime[PLACE_MAX];
};

struct keeper_profile {
	char          name[KEEPER_NAME_MAX], rootfs[KEEPER_NAME_MAX]; /* name: for messages */
	struct limits limits, ceilings;
	uint32_t      workspace_exec, require_all;
	uint32_t      ready; /* cells that stand ready */
	uint32_t      warm;  /* a zygote forks into them */
	uint32_t      zygote_cells, zygote_ms; /* one zygote serves so many cells, and so long (ms), at most */
	char          preload[KEEPER_PRELOAD_MAX]; /* modules that the zygote imports: names between commas */
	uint32_t             has_network; /* its cells listen for a brig-proxy, which is started */
	struct net_listeners listeners;
	uint32_t             has_trust;   /* 0 or 1, and only with a network */
	char                 proxy_digest[KEEPER_PROXY_DIGEST]; /* of both files, without what each reading makes anew: have they changed? */
};

/* A cell: an entry of the keeper, and which of the cells that it has had. */
struct keeper_cell_id {
	uint64_t number; /* KEEPER_ANY_CELL: the keeper chooses */
	uint64_t generation;
};
enum { KEEPER_ANY_CELL = KEEPER_CELLS_MAX };

struct keeper_run {
	uint32_t              profile;
	struct keeper_cell_id cell;  /* the cell whose ticket the door gives back with this */
	struct launch_order   order; /* goes on to the supervisor */
	uint32_t              shown_len;
	char                  shown[MOUNT_SHOWN_MAX][SHOWN_NAME_MAX]; /* below /workspace */
	uint32_t              files, terminals; /* 0 or 1 */
};

struct keeper_message {
	uint32_t kind; /* enum keeper_kind */
	union {
		struct keeper_setup   setup;
		struct keeper_profile profile;
		struct keeper_run     run;
		uint64_t              reading; /* SEAL: a number that the answer repeats */
	};
};

struct keeper_stats {
	uint32_t ready[KEEPER_KEPT_PROFILES_MAX], building[KEEPER_KEPT_PROFILES_MAX], running[KEEPER_KEPT_PROFILES_MAX];
	struct zygote_report zygote[KEEPER_KEPT_PROFILES_MAX]; /* as the supervisors wrote it */
	uint64_t made;   /* cells since the start */
	uint64_t cpu_us; /* of the keeper itself */
	uint64_t memory_bytes;
};

/* TICKET and RECALL. */
struct keeper_ticket {
	uint32_t           kind, profile;
	struct keeper_cell_id cell;
	int64_t            rootfs_since_s, rootfs_since_ns; /* when the name of its rootfs got the tree that it has */
	uint64_t           missing;           /* layers that its control groups do not give */
};

/* PROXY, with its socket. */
struct keeper_proxy {
	uint32_t kind, profile;
};

/* To SEAL and STATS. */
struct keeper_answer {
	uint32_t   kind;
	struct err err; /* SEAL: kind NONE when runs may be sent */
	union {
		struct keeper_stats stats;
		struct {
			uint64_t reading;
			uint32_t number[KEEPER_PROFILES_MAX]; /* of the profiles, in the order in which they came */
		} seal;
	};
};
