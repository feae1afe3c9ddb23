/*
 * watch_parts.h - what the files of a watch know of each other
 *
 * Each calls those below it: watch.c, the turns; watch_order.c; watch_warm.c, the program; victim.c; watch_end.c, the first reason;
 * watch_tell.c, messages.
 */
#pragma once
#include "watch.h"

/* watch_order.c. One message of the control socket: false when it is no order, but the end of the process that gives them. */
must_use bool watch_take_order(struct watch *w);
/* What comes over a ticket: false when it is no order, but its end. */
bool          watch_take_ticket(struct watch *w);

/* watch_warm.c. One message of PID 1, of the fork, of the fork server. */
void watch_hear_cell(struct watch *w);
void watch_hear_fork(struct watch *w);
void watch_warm_hear(struct watch *w);
/* An order, for a cell that is or will be prepared. */
void watch_warm_ordered(struct watch *w);
/* Of a fork to which nothing was ordered: it has read, or has died. */
void watch_warm_read(struct watch *w);
/* The program has ended. */
void watch_warm_program(struct watch *w);
/* The program that has started is a session's server. */
void watch_begin_session(struct watch *w);
/* For how long (ms) the fork server may be silent. */
double watch_warm_patience(struct watch *w, double now);

/* victim.c. A session has no memory: the process with most memory of its own is killed, or the youngest, if files are why. False: there is none but the two that hold it together. */
must_use bool watch_kill_victim(struct watch *w);
