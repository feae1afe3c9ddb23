/* watch_send.h - messages about a run (launch.h), to its client and to the keeper */
#pragma once
#include "watch.h"

/* Does not block. A closed other end is no failure: the loop sees it. */
must_use int watch_send(int sock, const struct launch_message *message, const int *fds, size_t n, struct err *e);

/* Sends the streams to the client, and closes them here. */
must_use int watch_send_started(struct watch *w, struct err *e);
void         watch_send_limit(const struct watch *w, enum limit_id limit);
/* Fills in which layers are in force, and why others are not. */
void         watch_fill_layers(const struct watch *w, struct run_end *ret);
void         watch_send_session(const struct watch *w);
void         watch_send_ready(struct watch *w);
/* To the keeper, once. */
void         watch_send_taken(struct watch *w);
/* To the keeper: the ticket was closed unused, and the cell still waits for an order. */
void         watch_send_returned(const struct watch *w);
/* The last message, to the client; to the keeper if there is no client. */
void         watch_send_ended(const struct watch *w);
