/*
 * session.h - a session as the door knows it: one run that stays, and the calls that are made in it.
 *
 * The program of that run is the session server (jail/guest/session.py). It is in the jail, has the program's rights and nothing
 * else, and holds the other end of a socket of which the door has one (session_message.h). So no process ever enters a cell in
 * which a stranger's program runs: what a call executes is forked inside. The server is not dumpable, so that programs beside it can end or
 * stop it, but not speak for it. The door keeps the clocks: a call that takes too long is interrupted, then killed,
 * then the whole session is.
 *
 *   STARTS -> OPEN -> CLOSES -> gone
 *
 * A session ends when its client closes it, when it was idle too long, when its lifetime is over, when the host has no memory, and with the service. What ended
 * it is remembered for a while, for clients that ask for it.
 */
#pragma once
#include "attempt.h"
#include "connection.h"
#include "loop.h"
#include "session_message.h"
#include "wall_clock.h"

enum {
	SESSION_CONTEXTS_MAX = CONFIG_CONTEXTS_MAX,
	SESSION_CALLS_MAX    = 64, /* under way */
	SESSION_BESIDE_MAX   = 1 << 22, /* as many processes as there can be */
	SESSION_GONE_MAX     = 64, /* that are remembered */
	SESSION_WHY_MAX      = 120,
};

struct session_call;
TAILQ_HEAD(session_calls, session_call);

/* An interpreter. One that has gone keeps its row, so that the next call hears that it was lost. */
struct session_context {
	char                 name[PROTOCOL_NAME_MAX + 1]; /* "": the row is free */
	bool                 is_there, was_lost;
	struct session_call *call; /* under way, or NULL */
};

struct session {
	TAILQ_ENTRY(session) link;
	enum { SESSION_STARTS, SESSION_OPEN, SESSION_CLOSES } state;
	struct served_run   *run;      /* that it is; which owns it */
	char                 name[PROTOCOL_NAME_MAX + 1]; /* "": none */
	struct limits        limits;   /* of its calls; idle_ms and lifetime_ms are its own */
	bool                 stays, terminal; /* terminal: calls may have one */
	struct loop_source   source;   /* fd -1: not yet, or not any more */
	struct loop_timer    timer;
	double               opened_ms, used_ms; /* CLOCK_MONOTONIC: used_ms when the last call ended */
	uint32_t             calls_made;
	uint32_t             victims;  /* processes that were ended because it had no memory */
	struct run_end       facts;    /* layers, missing, rootfs_digest */
	bool                 is_ready, is_known; /* its server takes calls; facts are there */
	int32_t              beside;   /* processes of no call that do what was asked for, as its server says */
	uint64_t             beside_words; /* so often it may still say that: a flood of words would keep the door from other work */
	bool                 is_to_be_frozen; /* that was asked of what watches it: to be thawed before anything is said to its server */
	struct session_context context[SESSION_CONTEXTS_MAX];
	struct session_calls calls;
	size_t               calls_len;
	char                 why[SESSION_WHY_MAX]; /* it ends; "": as its process ended */
};
/* One that has ended. */
struct session_gone {
	char  id[RUN_ID_LEN + 1], name[PROTOCOL_NAME_MAX + 1], why[SESSION_WHY_MAX];
	uid_t uid;
};

/* --- session.c: its life --- */

/* For a run that is about to be started; NULL when memory is short. Ends with session_ended(), or before there was a run with session_free(). */
struct session *session_new(struct served_run *run, const struct protocol_request *request);
void            session_free(struct session *s);
/* Its process is about to run; takes the socket. */
void session_started(struct session *s, int sock);
/* What the process that watches its run has said. */
void session_hear_facts(struct session *s, const struct run_end *facts, uint32_t victims);
/* Its run is over. Its calls are told so; then it is freed. */
void session_ended(struct session *s, const struct record *record);
/* Asks it to end; why: for clients that ask for it later. */
void session_close(struct session *s, const char *why);

/* By id or name, of this user; root finds those of all users by id. NULL with *why. */
struct session *session_find(const struct door *d, const char *id_or_name, uid_t uid, struct denial *why);
bool            session_name_is_taken(const struct door *d, const char *name, uid_t uid);
json_t         *session_list_json(const struct door *d, const struct connection *c);

/* --- session_say.c --- */

/* To its server, which is thawed first; takes the message over, NULL: memory was short. The descriptors stay the caller's. 0 or -errno; does not wait. */
must_use int session_say(struct session *s, json_t *message, const int *fds, size_t n);
/* Its processes use no CPU until something is said to its server, where control groups can do that. */
void         session_freeze(struct session *s);
/* It was asked for something that goes on beside calls. */
void         session_asked_beside(struct session *s);

/* --- session_clock.c --- */

/* A call has begun or ended. */
void session_touch(struct session *s);
/* For the next moment at which it may have to end. */
void session_set_clock(struct session *s);
/* Milliseconds that are left. */
double session_idle_left(const struct session *s, double now_ms);
double session_freeze_left(const struct session *s, double now_ms); /* HUGE_VAL: it may not be frozen now, or is already */
double session_lifetime_left(const struct session *s, double now_ms);

/* --- session_memory.c --- */

/* Where the host has less memory available than the setting spare_memory_bytes, the session that was idle for longest is closed, one a second. */
void session_watch_memory(struct door *d); /* one is about to open */
void session_look_at_memory(void *door);   /* of the door's timer */

/* --- session_call.c: what is done in it --- */

struct session_call {
	TAILQ_ENTRY(session_call) link;
	struct session         *session;
	struct connection      *connection; /* NULL: gone */
	struct peer             peer;
	struct session_context *context;    /* NULL: a command */
	bool                    terminal;   /* of a command: it has one */
	uint32_t                number;     /* for the session server */
	char                    id[RUN_ID_LEN + 1];
	uint64_t                tag;
	struct limits           limits;
	bool                    with_stdin, with_tools, is_fresh, is_lost, is_told;
	int                     tools;      /* the client's end, until it has it; -1 */
	uint32_t                calls;      /* of tools, that were told */
	enum { CALL_ASKED, CALL_RUNS, CALL_INTERRUPTED, CALL_KILLED, CALL_ENDED } state;
	bool                    is_decided; /* reason says why it ends */
	enum exit_reason        reason;
	int                     status;     /* as from wait4(); -1: none */
	int                     exec_errno;
	struct err              why;        /* it could not be started */
	double                  cpu_ms, asked_ms, ended_ms, started_at;
	struct wall_clock       clock;
	uint32_t                victims;    /* of the session, when it began */
	struct net_report      *net_mark;   /* what was known of its network then; heap, or NULL */
	unsigned                kills;      /* how often it was asked to be killed */
	struct loop_timer       timer;
	struct attempt          attempt;
};

/* A run or an exec with the key session. */
must_use int  session_call_start(struct session *s, struct connection *c, const struct protocol_request *request, const int *fds, struct denial *why);
/* What the session server says of it. False: that makes no sense. */
bool          session_call_hear(struct session *s, const struct session_message *message, int *fds, size_t n);
struct session_call *session_call_find(const struct door *d, const char *id, uid_t uid); /* or NULL */
void          session_call_interrupt(struct session_call *call);
/* Of one with a terminal: rows and columns as asked. One that the server cannot take now is lost, as the next one comes with the next change. */
void          session_call_resize(struct session_call *call, const struct protocol_request *request);
/* It is killed, or interrupted first if that may help. */
void          session_call_end(struct session_call *call, enum exit_reason reason);
void          session_call_wait(struct session_call *call, bool waits);
/* The session is over. */
void          session_call_lose(struct session_call *call, enum exit_reason reason);
void          session_calls_forget(struct door *d, struct connection *c);
