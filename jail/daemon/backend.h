/*
 * backend.h - who starts a run for the door.
 *
 * Private: a launcher that the door forks itself. Service: the keeper. Either
 * way the door gets a socket to the run's launcher, to be read with run_next().
 */
#pragma once
#include "profile_set.h"
#include "run.h"

/* Everything is borrowed for the call. */
struct backend_order {
	const struct served_profile *profile;
	const struct limits         *limits;
	const struct words          *words;
	int                          code_fd; /* -1: a command */
	uint32_t                     code_len;
	const struct mount_plan     *mounts;
	const char *const           *shown; /* "workspace/NAME" for each of shown_fd */
	const int                   *shown_fd;
	size_t                       shown_len;
	bool                         stdin_pipe, result_pipe, cold;
};

/* For stats. */
struct backend_counts {
	uint64_t ready, building; /* cells of one profile */
};

struct backend {
	const struct backend_ops *ops;
	void                     *self;
};

struct backend_ops {
	const char *name;
	bool        is_confinable; /* the door needs no privilege and forks nothing */
	int (*start)(void *self, struct run *ret, const struct backend_order *order, struct err *e);
	void (*count)(void *self, const struct served_profile *profile, struct backend_counts *ret);
	pid_t (*keeper)(void *self); /* 0: there is none */
	int (*lifeline)(void *self); /* a descriptor whose end of file is the end of the service, and that says nothing else; -1 */
};

static inline int backend_start(const struct backend *b, struct run *ret, const struct backend_order *order, struct err *e)
{
	return b->ops->start(b->self, ret, order, e);
}

/* places outlive it. */
struct backend backend_private(const struct places *places);
