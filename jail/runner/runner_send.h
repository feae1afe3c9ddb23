/* runner_send.h - messages about a run (run_spec.h), to its client and to the monitor */
#pragma once
#include "runner.h"

/* Does not block. A closed other end is no failure: the loop sees it. */
must_use int runner_send_message(int sock, const struct launch_message *message, const int *fds, size_t n,
				 struct err *e);

/* Sends the streams to the client, and closes them here. */
must_use int runner_send_program_started(struct runner *w, struct err *e);
void         runner_send_limit_reached(const struct runner *w, enum limit_id limit);
/* Fills in which layers are in force, and why others are not. */
void         runner_fill_layers(const struct runner *w, struct run_result *ret);
void         runner_send_session_state(const struct runner *w);
void         runner_send_cell_ready(struct runner *w);
/* To the monitor, once. */
void         runner_send_lease_taken(struct runner *w);
/* To the monitor: nothing is left of the run, and the place is free for the next cell. False: it gets no message. */
must_use bool runner_send_rests(int control);
/* To the monitor: the lease was closed unused, and the cell still waits for an order. */
void         runner_send_lease_returned(const struct runner *w);
/* The last message, to the client; to the monitor if there is no client. */
void         runner_send_run_ended(const struct runner *w);
