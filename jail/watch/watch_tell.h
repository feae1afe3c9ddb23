/* watch_tell.h - what a watch tells of its run (launch.h): to who reads the streams, and to who keeps the cell */
#pragma once
#include "watch.h"

/* A client that is gone is no failure: it is noticed by poll. */
must_use int watch_tell(int sock, const struct launch_message *message, const int *fds, size_t n, struct err *e);

/* The streams go to the client, and are closed here. */
must_use int watch_tell_started(struct watch *w, struct err *e);
void         watch_tell_limit(const struct watch *w, enum limit_id limit);
/* Which layers are in force, and why others are not. */
void         watch_say_layers(const struct watch *w, struct run_end *ret);
void         watch_tell_session(const struct watch *w);
void         watch_tell_ready(struct watch *w);
/* To the keeper, once. */
void         watch_tell_taken(struct watch *w);
/* To the keeper: the cell waits, and no ticket of it is out any more. */
void         watch_tell_returned(const struct watch *w);
/* The last message to the client. */
void         watch_tell_ended(const struct watch *w);
