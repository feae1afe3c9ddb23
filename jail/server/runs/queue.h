/*
 * queue.h - runs that wait until they may start.
 *
 * Each user has a queue, first come, first served; users take turns. An entry is the request as it came, with its
 * descriptors, and is checked in full when it can start. It leaves the queue when it is started or refused, when its
 * wait_ms is over, and when its client disconnects.
 */
#pragma once
#include "connection.h"
#include "gate.h"

enum { QUEUE_MAX = 1024, QUEUE_OF_USER_MAX = 512 };

/* True with *why: earlier runs of this user wait, and this one must wait behind them. */
must_use bool queue_has_earlier_runs(const struct connection *c, struct run_try *try, struct denial *why);
/* Tries to start the run: 0, or -1 with *why. */
typedef int queue_start_fn(struct connection *c, const struct protocol_request *request, struct run_try *try,
			   struct denial *why);
/*
 * try, why: the result of the first try. start: makes the next ones. Takes the descriptors of the request. False, and
 * nothing is taken: the request does not want to wait, or the queue is full.
 */
must_use bool queue_add_run(struct connection *c, const struct protocol_request *request, const struct run_try *try,
			    queue_start_fn *start,
			    const struct denial *why);
/* Starts the runs that may start. Called by the server's queue_timer. */
void queue_start_runs(void *server);
/* After a reload: refuses waiting runs that the new rules do not allow, and tries the others again. */
void queue_check_access_again(struct server *d);
/* A run has ended: another one may be able to start. */
void queue_retry_now(struct server *d);
/* Cancels a waiting run by its id. False: there is none that belongs to this user (root: to any user). */
must_use bool queue_cancel_run(struct server *d, const char *id, uid_t uid);
/* Drops the runs of a connection that is about to close. */
void queue_drop_connection(struct connection *c);
/* The service ends: refuses all waiting runs. */
void queue_refuse_all(struct server *d);
