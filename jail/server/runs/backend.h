/*
 * backend.h - what starts a run for the server.
 *
 * A private server forks a launcher. The server of a service uses a lease, or asks the
 * monitor, which asks the profile's supervisor. Either way the server gets a socket to
 * the process that watches the run, and reads it with run_receive_event().
 */
#pragma once
#include "net_proxy.h"
#include "profile_set.h"
#include "run.h"
#include "zygote_report.h"

/* For stats. */
struct backend_counts {
	/* cells of one profile; leases: of the ready ones, as far as the server knows */
	uint64_t             ready, building, leases;
	struct zygote_report zygote;
};

struct backend {
	void *self;
	pid_t monitor; /* 0: there is none, nothing is built ahead, and the last three functions are NULL */
	/*
	 * The brig-proxy of a profile, or one for a private run with this config (net_config.h). The caller releases
	 * it. NULL: there is none.
	 */
	struct net_proxy *(*proxy)(void *self, const struct served_profile *profile, int config);
	/* streams: all -1; as from run_receive_event() if the run has already started: RUN_STARTED will not come. */
	int (*start)(void *self, struct run *ret, const struct launch_args *spec, int streams[PIPES_MAX],
	     struct err *e);
	void (*settle)(void *self); /* does what can wait until the client has the event of its start */
	void (*count)(void *self, const struct served_profile *profile, struct backend_counts *ret);
	bool (*on_readable)(void *self); /* false: the monitor is gone, and the service must end */
};

static inline int backend_start(const struct backend *b, struct run *ret, const struct launch_args *spec,
				int streams[PIPES_MAX], struct err *e)
{
	for (int i = 0; i < PIPES_MAX; i++)
		streams[i] = -1;
	return b->start(b->self, ret, spec, streams, e);
}

static inline void backend_settle(const struct backend *b)
{
	if (b->settle)
		b->settle(b->self);
}

/* places must outlive it. */
struct backend backend_private_make(const struct brig_paths *places);
