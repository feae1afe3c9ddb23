/* forker.h - a forker as the process that starts it sees it: a fork server whose forks execute (fork_server.h) */
#pragma once
#include "err.h"
#include "fork_server.h"

struct forker {
	int                      requests; /* -1: there is none (yet) */
	int                      pidfd;
	uint32_t                 generation;
	bool                     is_for_one;     /* ends after one fork, and its privilege with it */
	bool                     is_oom_target;  /* no group limits its forks' memory: privilege_set_max_oom_score() */
	const struct sock_fprog *filter, *notifying; /* as in cell_spec */
};
#define FORKER_NONE ((struct forker){ .requests = -1, .pidfd = -1 })

/*
 * Starts a forker, unless there is one. It ends with its parent. If it has died, a request fails with EPIPE or the
 * answer is end of file; the caller then calls forker_close(), too.
 */
must_use int forker_start(struct forker *f, struct err *e);
/* Closes the socket, at whose end of file the forker ends. A parent that reaps all its children reaps it with them. */
void         forker_close(struct forker *f);
/* For a parent that is about to end, and reaps all its children. */
void         forker_kill(struct forker *f);
