/*
 * door.h - the process that strangers talk to.
 *
 * It parses, decides and tells; whatever needs privilege is done by the backend.
 * One thread; nothing here waits for a client. Connections and runs belong to
 * the door and know each other: a run whose connection closes is ended, and is
 * kept until the backend says that nothing is left of it.
 */
#pragma once
#include "access.h"
#include "backend.h"
#include "config.h"
#include "figures.h"
#include "log.h"
#include "loop.h"
#include "place.h"
#include "profile_set.h"
#include "quota.h"
#include "record.h"

#include <sys/queue.h>

enum {
	CONNECTIONS_MAX         = 1024,
	CONNECTIONS_OF_USER_MAX = 128,
	IDLE_MS_MAX             = 5 * 60 * 1000, /* of a connection without a run, then it is closed */
	ENDING_MS_MAX           = 5000,          /* for all runs to be cleaned up, then the service ends without them */
};

struct queued_run;
TAILQ_HEAD(run_queue, queued_run);

/* Users take turns, and the connections of one among themselves: many are heard no sooner than one. */
struct door_user {
	LIST_ENTRY(door_user) link;
	struct door          *door;
	uid_t                 uid;
	size_t                connections;
	struct loop           loop; /* of them, and */
	struct loop_source    source; /* its descriptor, in the door's own */
	struct run_queue      queue; /* queue.h */
	size_t                queued, queued_fds;
	uint64_t              turn; /* the last one */
	bool                  has_tried;
};

struct audit;
struct reload;
struct connection;
LIST_HEAD(door_users, door_user);
struct served_run;
LIST_HEAD(connection_list, connection);
TAILQ_HEAD(run_list, served_run); /* the oldest first */
struct session;
TAILQ_HEAD(session_list, session);
struct session_gone;

enum call_outcome { CALL_OK, CALL_DENIED, CALL_FAILED, CALL_OUTCOMES };

struct door_counts {
	uint64_t started, connections, refused[DENIAL_COUNT], ended[EXIT_REASONS], calls[CALL_OUTCOMES];
	struct {
		uint64_t connections, refused, failed, bytes_in, bytes_out;
	} network; /* of runs that have ended */
};

struct door {
	struct loop            loop;
	struct places          places;
	struct config          config, first_config; /* with which it has what cannot change */
	struct access          access;
	struct quota           quota;
	struct profile_set     profiles;
	struct backend         backend;
	struct door_users      users;
	struct connection_list connections;
	size_t                 connections_len;
	struct run_list        runs;
	size_t                 runs_len;
	struct session_list    sessions; /* the oldest first; each is a run as well */
	struct loop_timer      memory_timer; /* while there are any */
	struct session_gone   *gone;     /* SESSION_GONE_MAX rows of those that have ended */
	unsigned               gone_next;
	size_t                 queued, queued_fds, queued_fds_max; /* of all users */
	uint64_t               turns;
	uint64_t               networks; /* the last number of a run, for brig-proxy */
	size_t                 processors; /* young runs of one user, where users share them */
	struct loop_timer      queue_timer;
	struct door_counts     counts;
	struct figures         figures;
	struct log             log;
	struct audit          *audit; /* NULL: a private door */
	struct reload         *reload; /* NULL: a private door */
	double                 read_ms; /* when configuration and profiles were */
	const char *const     *confinement; /* names, NULL at the end */
	double                 born_ms, born_at; /* the latter in seconds since 1970 */
	bool                   is_private, is_ending;
};

void door_init(struct door *d); /* nothing is open: door_close() may follow */
/* The caller has filled in places; config, access and backend before the first client. */
must_use int door_open(struct door *d, struct err *e);
void         door_close(struct door *d);

/* Config, access and profiles, which are the door's then. Before the first client, and again while it serves. */
struct rules;
void         door_go_by(struct door *d, struct rules *r);

/* A client that has connected. Takes the socket over; whom the door does not want hears why. */
must_use int door_admit(struct door *d, int sock, struct denial *why);
/* A private door's only client, until it is gone. */
must_use int door_serve_one(struct door *d, int sock, struct err *e);
