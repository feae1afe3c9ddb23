/*
 * warm.h - the fork of a program into a cell, as the process that watches the cell sees it
 *
 *   BUILDING -> PREPARED -> ASKED -> WAITS -> FORKS
 *                           ASKED ----------> FORKS    ahead of any order
 *               PREPARED <- ASKED, WAITS               the fork server died, or has a successor: it is asked anew
 *
 * The fork server is the profile's zygote, or a plain one whose forks execute (fork_server.h); which one is decided when it is
 * asked. An order goes into the cell's order file and its order
 * socket, whichever process holds the other end by then. The program is a child of the process that watches the cell, which
 * reaps it.
 */
#pragma once
#include "forker.h"

struct cell;

/* The zygote as the process that keeps it knows it, at this moment. */
struct zygote_place {
	int      orders;     /* where a fork is asked for; what is asked while there is none waits for the next. -1: none can be started now */
	int      pidfd;      /* -1: there is none */
	pid_t    pid;
	uint32_t generation; /* of it */
	bool     is_up;      /* there was one that served, since orders can be sent */
	bool     starts;     /* it still imports: that may take longer */
	bool     ahead;      /* it forks before there is an order */
};
#define ZYGOTE_PLACE_NONE ((struct zygote_place){ .orders = -1, .pidfd = -1 })

enum warm_state { WARM_BUILDING, WARM_PREPARED, WARM_ASKED, WARM_WAITS, WARM_FORKS };

struct warm {
	enum warm_state state;
	bool            ahead;        /* the fork was asked for before there was an order */
	bool            stands;       /* it has said so: everything is given up, the filter is on */
	bool            is_hard;      /* PID 1 is as hard as it gets */
	bool            is_wanted;    /* a zygote may fork into this cell */
	struct zygote_place zygote;   /* before each turn as it is then; its descriptors are not ours */
	struct forker  *forker;       /* of the process that watches this cell */
	bool            by_forker;    /* that one was asked */
	bool            has_code;     /* main.py: not for a command */
	bool            code_is_removed; /* the fork must not remove it again */
	unsigned        asked_times;  /* since one was there that waited for an order */
	uint32_t        generation;   /* of the one that was asked, and */
	bool            started_then; /* it still imported */
	int             orders[2];    /* [0]: orders are sent here; [1]: the program's end */
	int                 order_file;
	int             prepared[PREPARED_FDS];
	int                 answer_fd;    /* fork_message */
	int             program_fd;   /* pidfd of the fork; -1: there is none (yet), or it was reaped */
	pid_t           program;
	int             report_fd;    /* child_report of the fork */
	int64_t         cpu_before_ns; /* of PID 1 */
	double          asked;        /* CLOCK_MONOTONIC ms */
};
extern const struct warm WARM_NONE;

/* A fork server that says nothing for so long is killed, and one that imports; so often one is asked. */
enum { WARM_MS_MAX = 3000, WARM_START_MS_MAX = 9000, WARM_ASKED_MAX = 3 };

/* Before the clone: what PID 1 does not make. */
must_use int warm_open(struct warm *w, struct err *e);
/* Is a zygote there, or can one be waited for? */
bool         warm_is_possible(const struct warm *w);
/* BUILDING: what PID 1 made; the descriptors are ours. */
must_use int warm_take_prepared(struct warm *w, const int *fds, size_t n, struct err *e);
/* PREPARED, and PID 1 is hard: a fork with these rlimits is asked for. */
must_use int warm_ask(struct warm *w, const struct cell *c, const struct child_rlimits *rlimits, struct err *e);

/* Something is to be read of answer_fd. */
enum warm_answer {
	WARM_GOES_ON,
	WARM_AGAIN,   /* this fork server is gone or goes, and has forked nothing: PREPARED */
	WARM_CANNOT,  /* *e says why */
	WARM_IS_LOST, /* it died when it had begun to fork: whether there is a program, and how it ends, is not known */
};
must_use enum warm_answer warm_hear(struct warm *w, struct err *e);

/* A fork was begun, and which process it is was not told yet. */
bool         warm_awaits_fork(const struct warm *w);
/* program_fd can be read: the program has ended, and is reaped. *status as from wait4(). -1 with *e: it cannot be known. */
must_use int warm_reap(struct warm *w, int *status, struct err *e);

/* May come before there is a fork that would read it. Words and code are memory files; tools_fd: as order_file_send() takes it. */
must_use int warm_deliver(struct warm *w, const struct order_head *o, int words_fd, int code_fd, int tools_fd, struct err *e);
/* One that says nothing: the process that keeps it starts another one. */
void         warm_kill_server(const struct warm *w);
void         warm_close(struct warm *w);
