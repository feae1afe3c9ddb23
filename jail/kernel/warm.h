/*
 * warm.h - a run that a zygote forks into its cell, as the launcher sees it
 *
 *   COLD -> WANTED -> ASKED -> FORKED      by a zygote that does what it is asked
 *                     ASKED -> COLD        by one that cannot: PID 1 forks the program, as if nobody had been asked
 *
 * An order may come while the cell is being built. Nobody is asked before that
 * is done: a fork would enter what is there, which may be the host's still.
 * PID 1 waits between order and fork until this is decided. The zygote, who is
 * the parent, reaps the program; PID 1, who ends the cell, is told its status.
 */
#pragma once
#include "zygote_protocol.h"

struct cell;
struct run_order;

enum warm_state { WARM_COLD, WARM_WANTED, WARM_ASKED, WARM_FORKED };

struct warm {
	enum warm_state state;
	int             orders;        /* to the zygote; the launcher's; -1: there is none */
	int             answer_fd;     /* zygote_word */
	int             report_fd;     /* child_report of the fork */
	int64_t         cpu_before_ns; /* of PID 1 */
	double          asked;         /* CLOCK_MONOTONIC ms */
	struct child_order order;      /* WANTED: for the zygote, and */
	int             words_fd;
};
#define WARM_NONE ((struct warm){ .orders = -1, .answer_fd = -1, .report_fd = -1, .words_fd = -1 })

enum { WARM_MS_MAX = 2000 }; /* a zygote that says nothing for so long is asked no more */

/* Keeps a copy of both, for when the cell is ready. */
must_use int warm_want(struct warm *w, const struct child_order *order, int words_fd, struct err *e);
/* WANTED, and the cell is ready: ASKED, or -1 with the reason. */
must_use int warm_ask(struct warm *w, const struct cell *c, struct err *e);
/* CANNOT: warm_give_up() is next. LOST: the zygote died while it had the program, and with it the status. *e says why. */
enum warm_answer { WARM_GOES_ON, WARM_CANNOT, WARM_IS_LOST };

/* Something is to be read of answer_fd. */
must_use enum warm_answer warm_hear(struct warm *w, const struct cell *c, struct err *e);
/* No longer wanted: whatever the zygote does with the order now cannot become a program. */
void warm_give_up(struct warm *w, const struct cell *c);
void warm_close(struct warm *w);
