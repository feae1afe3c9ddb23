/*
 * runner_parts.h - what the files of a watch know of each other
 *
 * Each calls those below it: runner.c, the turns; runner_spec.c; runner_warm.c, the program; oom_target.c;
 * runner_end.c, the first reason; runner_send.c, messages.
 */
#pragma once
#include "runner.h"

/* runner_end.c. Another order of states than that of enum runner_state is our mistake, and ends this process. */
void runner_enter_state(struct runner *w, enum runner_state next);

/* runner_spec.c. Reads one message of the control socket. False: end of file, or no valid order. */
must_use bool runner_receive_control_spec(struct runner *w);
/* Reads one message of the lease. False: end of file, or no valid order; the lease is closed. */
bool          runner_receive_lease_spec(struct runner *w);

/* runner_warm.c. One message of PID 1, of the fork, of the fork server. */
void runner_receive_init_report(struct runner *w);
void runner_receive_fork_report(struct runner *w);
/* All messages that the fork has sent so far. */
void runner_receive_all_fork_reports(struct runner *w);
void runner_receive_fork_server_answer(struct runner *w);
/* An order, for a cell that is or will be prepared. */
void runner_handle_spec_taken(struct runner *w);
/* The fork reports no more. If this process has no order, the cell ends. */
void runner_handle_fork_gone(struct runner *w);
/* The program has ended. */
void runner_handle_program_end(struct runner *w);
/* The program that has started is a session's server. */
void runner_start_session(struct runner *w);
/* For how long (ms) the fork server may be silent. */
double runner_check_fork_server_timeout(struct runner *w, double now);

/* oom_target.c. A session is out of memory: kills the process with the most, or the youngest if files use it up. */
must_use bool runner_kill_oom_target(struct runner *w);
