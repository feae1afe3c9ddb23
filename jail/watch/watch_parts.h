/*
 * watch_parts.h - what the files of a watch know of each other
 *
 * Each calls those below it: watch.c, the turns; watch_order.c; watch_warm.c, the program; victim.c; watch_end.c, the first reason;
 * watch_send.c, messages.
 */
#pragma once
#include "watch.h"

/* watch_order.c. Reads one message of the control socket. False: end of file, or no valid order. */
must_use bool watch_take_order(struct watch *w);
/* Reads one message of the ticket. False: end of file, or no valid order; the ticket is closed. */
bool          watch_take_ticket(struct watch *w);

/* watch_warm.c. One message of PID 1, of the fork, of the fork server. */
void watch_receive_init(struct watch *w);
void watch_receive_fork(struct watch *w);
/* All messages that the fork has sent so far. */
void watch_receive_all_of_fork(struct watch *w);
void watch_receive_fork_server(struct watch *w);
/* An order, for a cell that is or will be prepared. */
void watch_order_taken(struct watch *w);
/* The fork reports no more. If this process has no order, the cell ends. */
void watch_fork_is_gone(struct watch *w);
/* The program has ended. */
void watch_program_ended(struct watch *w);
/* The program that has started is a session's server. */
void watch_begin_session(struct watch *w);
/* For how long (ms) the fork server may be silent. */
double watch_fork_server_timeout(struct watch *w, double now);

/* victim.c. A session has no memory left: kills the process with most of its own, or the youngest if files have used it up. False: none. */
must_use bool watch_kill_victim(struct watch *w);
