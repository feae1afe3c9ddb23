/*
 * backend_service.h - the monitor starts the runs
 *
 * The monitor gets the profiles from the reader. The server names them by their numbers only.
 */
#pragma once
#include "backend.h"
#include "id_range.h"
#include "loop.h"
#include "separate.h"
#include "lease.h"

struct backend_service {
	int                  monitor;
	pid_t                pid;
	enum monitor_mode    mode;
	const struct brig_paths *places;
	struct lease_box     leases;
	/* by the profile's number; NULL: the monitor has announced none */
	struct net_proxy    *proxy[MONITOR_ALL_PROFILES_MAX];
	struct lease        *spent; /* a used lease, which backend_settle() closes, or NULL */
	struct monitor_stats stats;
	/* CLOCK_MONOTONIC: the age of stats counts from then; in the future after the monitor did not answer */
	double               stats_ms;
};

/*
 * Takes the monitor's socket over; places must outlive it. Before the first run the reader must have sent the profiles
 * (rules_offer.h).
 */
must_use int backend_service_open(struct backend_service *ret, const struct separation *parts,
				  const struct brig_paths *places, struct err *e);
void         backend_service_close(struct backend_service *b); /* may be called on BACKEND_SERVICE_NONE */
#define BACKEND_SERVICE_NONE ((struct backend_service){ .monitor = -1 })
/* self must outlive it. */
struct backend backend_service_make(struct backend_service *self);
