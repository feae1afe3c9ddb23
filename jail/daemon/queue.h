/*
 * queue.h - runs that wait until they may start.
 *
 * Each user has a queue, first come, first served; users take turns. What waits is the request as it came, with its
 * descriptors: it is looked at in full when there is a place. It leaves the queue when it is started or refused, when it
 * has waited for as long as it wanted to, and when its client hangs up.
 */
#pragma once
#include "connection.h"
#include "gate.h"

enum { QUEUE_MAX = 1024, QUEUE_OF_USER_MAX = 512 };

/* Earlier runs of this user wait: this one comes behind them. *why says so. */
must_use bool queue_has_others(const struct connection *c, struct run_try *try, struct denial *why);
/* One more try: 0, or why not. */
typedef int queue_start_fn(struct connection *c, const struct protocol_request *request, struct run_try *try, const int *fds, struct denial *why);
/* try: what came of the first one. Takes the descriptors. start: tries again. False: it does not wait, or there is no room. */
must_use bool queue_enter(struct connection *c, const struct protocol_request *request, const struct run_try *try, int *fds, size_t n,
			  queue_start_fn *start, const struct denial *why);
/* Starts what may start; of the door's timer. */
void queue_serve(void *door);
/* After a reload: refuses waiting runs that the new rules do not allow, and tries the others again. */
void queue_judge(struct door *d);
/* Something has ended: there may be a place. */
void queue_wake(struct door *d);
/* By its id: as a run that is cancelled. False: there is none, or not of this user. */
must_use bool queue_cancel(struct door *d, const char *id, uid_t uid);
/* The connection is about to close. */
void queue_forget(struct connection *c);
/* The service ends: those that wait are told. */
void queue_end(struct door *d);
