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

/* Everything is borrowed for the call. */
struct backend_order {
	const struct served_profile *profile;
	const struct limits         *limits;
	struct exec_args            *exec_args; /* sealed when it is sent to another process */
	const char                  *exec_text;
	int                          code_fd;    /* -1: a command */
	uint32_t                     code_len;
	const char                  *code;
	const struct mount_plan     *mounts;
	const char *const           *shown; /* "workspace/NAME" for each of shown_fd */
	const int                   *shown_fd;
	size_t                       shown_len;
	int                          files_fd, tools_fd; /* -1: none */
	const struct net_listeners  *listeners; /* of a private run; NULL: no network. A service's are the profile's */
	int                          trust_fd;  /* of a private run, as in run_order; -1: none */
	bool                         stdin_pipe, result_pipe, cold, terminals;
};

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
	int (*start)(void *self, struct run *ret, const struct backend_order *order, int streams[PIPES_MAX], struct err *e);
	void (*settle)(void *self); /* what can wait until the client of the run that was just started has heard of it; NULL: nothing */
	void (*count)(void *self, const struct served_profile *profile, struct backend_counts *ret);
	pid_t (*keeper)(void *self); /* 0: there is none */
	int (*lifeline)(void *self); /* a descriptor to be heard whenever it can be read; -1: there is none */
	bool (*hear)(void *self);    /* false: the service is at its end */
};

static inline int backend_start(const struct backend *b, struct run *ret, const struct backend_order *order, int streams[PIPES_MAX], struct err *e)
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
