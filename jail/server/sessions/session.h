/*
 * session.h - a session as the server knows it: one run that stays, and the calls that are made in it.
 *
 * The program of that run is the session server (jail/guest/session.py). It is in the jail, has the rights of every
 * program there, and is connected to the server by a socket (session_message.h). It forks what a call executes: so no
 * process enters a cell from outside while an untrusted program runs there. The server is not dumpable: programs beside
 * it can end or stop it, but cannot take its socket and speak for it. The server keeps the clocks: a call that takes
 * too long is interrupted, then killed; if that fails, the whole session is ended.
 *
 *   STARTS -> AWAITS_SET_UP or AWAITS_SERVER -> OPEN -> CLOSES -> gone
 *
 * A session ends when its client closes it, or disconnects and the session does not stay; when it was idle too long,
 * its lifetime is over, or the host is short of memory; and with the service. The server remembers the reason for a
 * while, for clients that ask.
 */
#pragma once
#include "attempt.h"
#include "connection.h"
#include "loop.h"
#include "session_message.h"
#include "wall_clock.h"

enum {
	SESSION_CONTEXTS_MAX = CONFIG_CONTEXTS_MAX,
	SESSION_CALLS_MAX    = 64, /* under way in one session */
	SESSION_BACKGROUND_MAX = 1 << 22, /* PID_MAX_LIMIT of the kernel: there cannot be more processes */
	SESSION_GONE_MAX     = 64, /* sessions that have ended and are remembered */
	SESSION_WHY_MAX      = 120,
	SESSION_LIST_BYTES   = 16 * 1024, /* of a reply, which is one message: runs have the rest */
};

struct session_call;
TAILQ_HEAD(session_calls, session_call);

/* A context. Its row outlives its interpreter, so that the next call can report that the interpreter was lost. */
struct session_context {
	char                 name[PROTOCOL_NAME_MAX + 1]; /* "": the row is free */
	bool                 is_there, was_lost;
	struct session_call *call; /* under way, or NULL */
};

/*
 * In this order. It opens when both its server and the process that watches its run have reported: the latter has
 * removed main.py by then.
 */
enum session_state {
	SESSION_STARTS,
	SESSION_AWAITS_SET_UP,  /* its server takes calls */
	SESSION_AWAITS_SERVER, /* its run is set up */
	SESSION_OPEN,
	SESSION_CLOSES,
};

struct session {
	TAILQ_ENTRY(session) link;
	enum session_state   state;
	struct served_run   *run;      /* the run that this session is; its end frees the session */
	char                 name[PROTOCOL_NAME_MAX + 1]; /* "": none */
	struct limits        limits;   /* of each call; idle_ms and lifetime_ms are those of the session */
	/* stays: outlives its client's connection; terminal: its calls may have one */
	bool                 stays, terminal;
	struct loop_source   source;   /* the socket to its server; fd -1: not there yet, or closed */
	struct loop_timer    timer;
	double               opened_ms, used_ms; /* CLOCK_MONOTONIC; used_ms: when a request last began or ended */
	uint32_t             calls_made;
	uint32_t             victims;  /* processes that were killed because the session had no memory left */
	struct run_result    set_up;   /* layers, missing, rootfs_digest */
	/* in the socket: a size is kept until then, see session_call_resize_terminal() */
	bool                 awaits_room;
	/* processes that work beside calls (files, detached commands), as its server reports */
	int32_t              background;
	/* so many such messages its server may still send: a flood would keep the server from other work */
	uint64_t             background_messages;
	bool                 was_ready; /* its server has sent READY, which it may do once */
	/* the process that watches it was asked to freeze it: thaw it before its server is sent anything */
	bool                 is_to_be_frozen;
	struct session_context context[SESSION_CONTEXTS_MAX];
	struct session_calls calls;
	size_t               calls_len;
	char                 why[SESSION_WHY_MAX]; /* why it ends; "": the record of its run has the reason */
};
/* A session that has ended. */
struct session_gone {
	char  id[RUN_ID_LEN + 1], name[PROTOCOL_NAME_MAX + 1], why[SESSION_WHY_MAX];
	uid_t uid;
};

/* --- session.c: its life --- */

/*
 * For a run that is about to be started. NULL: memory is short. session_on_run_ended() frees it; if the run is not
 * started, session_free().
 */
struct session *session_new(struct served_run *run, const struct protocol_request *request);
void            session_free(struct session *s);
/* Its program has started. Takes over sock, the server's end of the socket to the server. */
void session_on_run_started(struct session *s, int sock);
/* The process that watches its run has sent what it knows of the session. */
void session_on_run_set_up(struct session *s, const struct run_result *set_up, uint32_t victims);
/*
 * Its run is over. Ends its calls, remembers why it ended, and frees it. Returns why; valid until other sessions end.
 */
const char *session_on_run_ended(struct session *s, enum exit_reason reason);
/* Asks it to end. why: for clients that ask for the session later. */
void session_request_close(struct session *s, const char *why);

/* It ends after so long from now on, in place of when it would have. -1 with *why: its profile has a lower ceiling. */
must_use int    session_renew(struct session *s, uint64_t lifetime_ms, struct denial *why);
bool            session_send_lifetime(const struct session *s);

/* By id or name, of this user; root finds those of all users by id. NULL with *why. */
struct session *session_find_open_or_deny(const struct server *d, const char *id_or_name, uid_t uid,
					  struct denial *why);
bool            session_name_is_taken(const struct server *d, const char *name, uid_t uid);
json_t         *sessions_to_json(const struct server *d, const struct connection *c);

/* --- session_send.c --- */

/*
 * Sends a message to its server, which is thawed first. Takes the message over; NULL: memory was short. The descriptors
 * stay the caller's. 0 or -errno; does not wait.
 */
must_use int session_send_message(struct session *s, json_t *message, const int *fds, size_t n);
/* The same for a request of a client, which is refused if the message cannot be sent. */
must_use int session_send_or_deny(struct session *s, json_t *message, const int *fds, size_t n, struct denial *why);
/* Its processes use no CPU until its server is sent a message, where control groups can do that. */
void         session_freeze(struct session *s);
/* Its server was sent a request whose work goes on beside calls, and may report about it twice. */
void         session_allow_background_messages(struct session *s);

/* --- session_clock.c --- */

/* A call has begun or ended. */
void session_note_use(struct session *s);
/* Sets the timer for the next moment at which the session may have to end or to be frozen. */
void session_set_timer(struct session *s);
/* Milliseconds that are left. */
double session_idle_left(const struct session *s, double now_ms);
/* HUGE_VAL: it may not be frozen now, or is already */
double session_freeze_left(const struct session *s, double now_ms);
double session_lifetime_left(const struct session *s, double now_ms);

/* --- session_memory.c --- */

/*
 * While the host has less memory available than spare_memory_bytes, the session that was idle for longest is closed,
 * one a second.
 */
void session_start_memory_timer(struct server *d); /* a session is about to open: the timer must run */
void session_close_idle_if_memory_short(void *server);   /* called by the server's memory_timer */

/* --- session_call_start.c, session_call.c: what is done in it --- */

enum { CALL_UNDECIDED = -1 };

struct session_call {
	TAILQ_ENTRY(session_call) link;
	struct session         *session;
	struct connection      *connection; /* NULL: gone */
	struct peer             peer;
	struct session_context *context;    /* NULL: a command */
	bool                    terminal;   /* a command that has one */
	bool                    has_size;   /* rows and columns are still to be sent to the server */
	uint64_t                rows, columns;
	uint32_t                number;     /* for the session server */
	char                    id[RUN_ID_LEN + 1];
	uint64_t                tag;
	struct limits           limits;
	bool                    with_stdin, with_tools;
	/* of its context; for a command STARTS_NEW: the first call of the session */
	enum { CALL_KEEPS, CALL_STARTS_NEW, CALL_LOSES } interpreter;
	int                     tools;      /* the client's end of their socket, until it is sent; then -1 */
	uint32_t                calls;      /* of tools, which the client has reported */
	enum { CALL_ASKED, CALL_RUNS, CALL_INTERRUPTED, CALL_KILLED, CALL_ENDED } state;
	bool                    cpu_is_used_up; /* its server has reported that */
	/* enum exit_reason: why it ends; CALL_UNDECIDED: nothing has ended it yet */
	int                     reason;
	int                     status;     /* as from wait4(); -1: none */
	int                     exec_errno;
	struct err              why;        /* why it could not be started */
	double                  cpu_ms, asked_ms, ended_ms, started_at;
	struct wall_clock       clock;
	uint32_t                victims;    /* of the session, when it began */
	struct net_report      *net_mark;   /* the report about the session's network then; heap, or NULL */
	unsigned                kills;      /* how often the server was asked to kill it */
	struct loop_timer       timer;
	struct attempt          attempt;
};

/* For a request run or exec with the key session. fds: those of the request, borrowed. */
must_use int  session_call_start(struct session *s, struct connection *c, const struct protocol_request *request,
				 const int *fds, struct denial *why);
/* The server was asked to start it, and has a time for that. */
void          session_call_set_start_timer(struct session_call *call);
/* Takes a message of the session server about a call. False: it makes no sense. fds stay the caller's. */
bool          session_call_handle_message(struct session *s, const struct session_message *message, int *fds, size_t n);
struct session_call *session_call_find(const struct server *d, const char *id, uid_t uid); /* or NULL */
void          session_call_interrupt(struct session_call *call);
/*
 * Sets the rows and columns of the call's terminal. While the socket is full, only the last size is
 * kept for it.
 */
void          session_call_resize_terminal(struct session_call *call, const struct protocol_request *request);
/* sends the sizes that were kept, as many as the socket takes */
void          session_calls_send_terminal_sizes(struct session *s);
/* Kills the call; a program in a context is interrupted first, unless it was cancelled. */
void          session_call_interrupt_or_kill(struct session_call *call, enum exit_reason reason);
void          session_call_set_waiting(struct session_call *call, bool waits);
/* The session is over: ends the call with this reason, and frees it. */
void          session_call_end_and_free(struct session_call *call, enum exit_reason reason);
void          session_calls_drop_connection(struct server *d, struct connection *c);
