/*
 * backend.h - what starts a run for the door.
 *
 * Private: a launcher that the door forks itself. Service: the keeper, which asks
 * the profile's supervisor. Either way the door gets a socket to the process that
 * watches the run, to be read with run_next().
 */
#pragma once
#include "net_proxy.h"
#include "profile_set.h"
#include "run.h"
#include "zygote_report.h"

/* For stats. */
struct backend_counts {
	uint64_t             ready, building; /* cells of one profile */
	struct zygote_report zygote;
};

struct backend {
	const struct backend_ops *ops;
	void                     *self;
};

struct backend_ops {
	const char *name;
	bool        is_confinable; /* the door needs no privilege and forks nothing */
	/* brig-proxy of a profile; of a private run its own, with config (net_config.h). Held for the caller; NULL: there is none. */
	struct net_proxy *(*proxy)(void *self, const struct served_profile *profile, int config);
	/* streams: as from run_next(), when the run goes its way already and nobody's word has to be waited for; else all -1. */
	int (*start)(void *self, struct run *ret, const struct run_order *order, int streams[PIPES_MAX], struct err *e);
	void (*settle)(void *self); /* what can wait until the client of the run that was just started has heard of it; NULL: nothing */
	void (*count)(void *self, const struct served_profile *profile, struct backend_counts *ret);
	pid_t (*keeper)(void *self); /* 0: there is none */
	int (*lifeline)(void *self); /* a descriptor to be heard whenever it can be read; -1: there is none */
	bool (*hear)(void *self);    /* false: the service is at its end */
};

static inline int backend_start(const struct backend *b, struct run *ret, const struct run_order *order, int streams[PIPES_MAX], struct err *e)
{
	for (int i = 0; i < PIPES_MAX; i++)
		streams[i] = -1;
	return b->ops->start(b->self, ret, order, streams, e);
}

static inline void backend_settle(const struct backend *b)
{
	if (b->ops->settle)
		b->ops->settle(b->self);
}

/* places outlive it. */
struct backend backend_private(const struct places *places);
