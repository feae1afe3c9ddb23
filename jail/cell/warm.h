/*
 * warm.h - the fork of a program into a cell, as the process that watches the cell sees it
 *
 *   BUILDING -> PREPARED -> ASKED -> WAITS -> FORKS
 *                           ASKED ----------> FORKS    ahead of any order
 *               PREPARED <- ASKED, WAITS               the fork server died, or has a successor: the next one is asked
 *
 * The fork server is the profile's zygote, or a forker (fork_server.h); which one is decided when the fork is
 * requested. An order is written into the cell's order file, then announced on its order socket: the fork server or
 * its fork holds the other end. The program is a child of the process that watches the cell, which reaps it.
 */
#pragma once
#include "forker.h"

struct cell;

/* The state of the profile's zygote, as its supervisor knows it at this moment. */
struct zygote_status {
	int      requests;   /* a request sent while there is no zygote waits for the next; -1: none can be started now */
	int      pidfd;      /* -1: there is none */
	pid_t    pid;
	uint32_t generation; /* of this zygote; the next has another */
	bool     is_up;      /* a zygote has served since the socket for requests was made */
	bool     starts;     /* it still imports: its answer may take longer */
	bool     ahead;      /* it forks before there is an order */
};
#define ZYGOTE_STATUS_NONE ((struct zygote_status){ .requests = -1, .pidfd = -1 })

enum warm_state { WARM_BUILDING, WARM_PREPARED, WARM_ASKED, WARM_WAITS, WARM_FORKS };

/* PID 1 makes main.py before it is known what will run; for a command, the fork or its supervisor removes it. */
enum warm_code { CODE_STAYS, CODE_TO_REMOVE, CODE_REMOVED };

struct warm {
	enum warm_state state;
	bool            ahead;        /* the fork was asked for before there was an order */
	bool            fork_is_confined; /* the fork has reported that it has no rights and its filter on */
	bool            init_is_confined; /* brig-init has reported that it has no capability and has its filter on */
	bool            is_wanted;    /* a zygote may fork into this cell */
	struct zygote_status zygote;  /* the caller sets it before each turn; its descriptors are borrowed */
	struct forker  *forker;       /* borrowed: of the process that watches this cell */
	bool            by_forker;    /* the forker was asked, not the zygote */
	enum warm_code  code;
	unsigned        asked_times;  /* how often a fork was requested since a fork server last waited for an order */
	uint32_t        generation;   /* of the fork server that was asked */
	bool            server_was_importing; /* that server still imported */
	int             orders[2];    /* [0]: orders are sent here; [1]: the program's end */
	int                 run_spec_file;
	int             prepared[PREPARED_FDS];
	int                 answer_fd;    /* struct fork_message of the fork server */
	int             program_fd;   /* pidfd of the fork; -1: there is none (yet), or it was reaped */
	pid_t           program;
	int             report_fd;    /* child_report of the fork */
	int             offered;      /* the listener's number in the fork, which could not send it; 0: none */
	int64_t         cpu_before_ns; /* CPU time of PID 1 before it joined its groups */
	double          asked;        /* CLOCK_MONOTONIC ms */
};
extern const struct warm WARM_NONE;

/* A fork server that is silent for so long (START: while it imports) is killed. At most ASKED_MAX are asked in turn. */
enum { WARM_MS_MAX = 3000, WARM_START_MS_MAX = 9000, WARM_ASKED_MAX = 3 };

/* Before PID 1 is cloned: makes the order socket and the order file. */
must_use int warm_open_channels(struct warm *w, struct err *e);
/* True: a zygote may fork into this cell, is there or is being started, and not too many requests wait for it. */
bool         warm_is_zygote_ready(const struct warm *w);
/* In BUILDING: takes over what PID 1 made. After a failure the descriptors stay the caller's. */
must_use int warm_adopt_prepared_fds(struct warm *w, const int *fds, size_t n, struct err *e);
/* In PREPARED, when init_is_confined is set: requests a fork with these rlimits. */
must_use int warm_request_fork(struct warm *w, const struct cell *c, bool workspace_exec,
			       const struct child_rlimits *rlimits, struct err *e);

/* When answer_fd is readable. */
enum warm_answer {
	WARM_GOES_ON,
	WARM_AGAIN,   /* this fork server has ended or retires, and has forked nothing: the state is PREPARED again */
	WARM_CANNOT,  /* *e says why */
	WARM_IS_LOST, /* the fork server failed after it began to fork: nothing is known of the program */
};
must_use enum warm_answer warm_receive_answer(struct warm *w, struct err *e);

/* True: a fork was begun, or may have been, and its pid is not known yet. */
bool         warm_awaits_fork(const struct warm *w);
/* When program_fd is readable: reaps the program. *status: as from wait4(). -1 with *e: it cannot be known. */
must_use int warm_reap_program(struct warm *w, int *status, struct err *e);

/* The order; a fork to read it need not be there yet. The descriptors stay the caller's. */
must_use int warm_deliver_spec(struct warm *w, const struct run_spec_head *o, const struct run_spec_fds *fds, struct err *e);
/* Kills the fork server that was asked and does not answer. The process that keeps it starts another one. */
void         warm_kill_fork_server(const struct warm *w);
void         warm_close(struct warm *w);
