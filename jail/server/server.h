/*
 * server.h - the process of brigd that serves clients.
 *
 * It parses requests, decides and answers; the backend does what needs privilege. It has
 * one thread and never waits for a client. The server owns connections and runs, which
 * point to each other. When a connection closes, its runs are cancelled; each is kept
 * until the process that watches it reports that nothing is left of it.
 */
#pragma once
#include "access.h"
#include "backend.h"
#include "config.h"
#include "figures.h"
#include "linked_list.h"
#include "log.h"
#include "loop.h"
#include "paths.h"
#include "profile_set.h"
#include "quota.h"
#include "record.h"

enum {
	CONNECTIONS_MAX         = 1024,
	CONNECTIONS_OF_USER_MAX = 128,
	IDLE_MS_MAX             = 5 * 60 * 1000, /* after that a connection without a run is closed */
	/* at its end the service waits so long for its runs to be cleaned up */
	ENDING_MS_MAX           = 5000,
};

struct queued_run;
TAILQ_HEAD(run_queue, queued_run);

/* Users take turns, and so do the connections of one user: more connections do not bring a user more turns. */
struct server_user {
	LIST_ENTRY(server_user) link;
	struct server          *server;
	uid_t                 uid;
	size_t                connections;
	struct loop           loop; /* of this user's connections */
	struct loop_source    source; /* the descriptor of `loop`, in the server's loop */
	struct run_queue      queue; /* queue.h */
	size_t                queued, queued_fds;
	/* when a queued run of this user was last started, as a value of server.turns; the lowest is next */
	uint64_t              turn;
	bool                  has_tried;
};

struct audit;
struct reload;
struct connection;
LIST_HEAD(server_users, server_user);
struct served_run;
LIST_HEAD(connection_list, connection);
TAILQ_HEAD(run_list, served_run); /* the oldest first */
struct session;
TAILQ_HEAD(session_list, session);
struct session_gone;

enum call_outcome { CALL_OK, CALL_DENIED, CALL_FAILED, CALL_OUTCOMES };

struct server_counts {
	uint64_t started, connections, refused[DENIAL_COUNT], ended[EXIT_REASONS], calls[CALL_OUTCOMES];
	struct {
		uint64_t connections, refused, failed, bytes_in, bytes_out;
	} network; /* of runs that have ended */
};

struct server {
	struct loop            loop;
	struct brig_paths      places;
	/* first_config: the one at the start, with which settings that need a restart are compared */
	struct config          config, first_config;
	struct access          access;
	struct quota           quota;
	struct profile_set     profiles;
	struct backend         backend;
	struct server_users    users;
	struct connection_list connections;
	size_t                 connections_len;
	struct run_list        runs;
	size_t                 runs_len;
	struct session_list    sessions; /* the oldest first; each is a run as well */
	struct loop_timer      memory_timer; /* set while there are sessions */
	struct session_gone   *gone;     /* SESSION_GONE_MAX rows, of sessions that have ended */
	unsigned               gone_next;
	size_t                 queued, queued_fds, queued_fds_max; /* of all users */
	uint64_t               turns;
	uint64_t               networks; /* the number of the last run, as brig-proxy knows it */
	size_t                 processors; /* so many young runs may one user have while others ask for runs */
	struct loop_timer      queue_timer;
	struct server_counts   counts;
	struct figures         figures;
	struct log             log;
	struct audit          *audit; /* NULL: a private server */
	struct reload         *reload; /* NULL: a private server */
	double                 read_ms; /* CLOCK_MONOTONIC: when configuration and profiles were taken */
	const char *const     *confinement; /* names, NULL at the end */
	double                 born_ms, born_at; /* the latter in seconds since 1970 */
	bool                   is_private, is_ending;
};

void server_init(struct server *d); /* nothing is open: server_close() may follow */
/* The caller has filled in places; config, access and backend must be there before the first client. */
must_use int server_open(struct server *d, struct err *e);
void         server_close(struct server *d);

/*
 * Moves configuration, access and profiles from r into the server. Called before the first client, and at each reload.
 */
struct rules;
void         server_set_rules(struct server *d, struct rules *r);

/* Admits a client that has connected; one that is refused gets the reason. Takes the socket over. */
must_use int server_admit_client(struct server *d, int sock, struct denial *why);
/* Serves a private server's only client until it and its runs are gone. Takes the socket over. */
must_use int server_serve_one_client(struct server *d, int sock, struct err *e);
