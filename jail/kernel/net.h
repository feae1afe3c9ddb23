/*
 * net.h - an empty network namespace with lo up.
 *
 * Half of the standard library's network modules need a loopback (m). The
 * namespace is made by the launcher and belongs to its user namespace, so that
 * nothing inside a cell has power over it.
 *
 * Making one takes half a millisecond (m), a fifth of the whole set-up, so a
 * thread makes it while the launcher does other things. The thread is gone
 * when net_job_enter() returns: whoever forks afterwards is single-threaded.
 */
#pragma once
#include "err.h"

#include <pthread.h>

struct net_job {
	pthread_t  thread;
	bool       running;
	int        fd; /* the namespace; -1 while there is none */
	struct err err;
};
#define NET_JOB_NONE ((struct net_job){ .fd = -1 })

/* job must stay where it is until net_job_done(). */
must_use int net_job_start(struct net_job *job, struct err *e);

/* The calling process moves into the namespace for good. */
must_use int net_job_enter(struct net_job *job, struct err *e);

/* Waits for the thread; may be called twice, and after a failure. */
void net_job_done(struct net_job *job);
#define scoped_net_job scoped(net_job_done) struct net_job
