/* forker.h - a plain fork server, as the process that starts it sees it: its forks execute (fork_server.h) */
#pragma once
#include "err.h"
#include "fork_server.h"

struct forker {
	int                      orders; /* -1: there is none (yet) */
	int                      pidfd;
	uint32_t                 generation;
	bool                     is_for_one;       /* it goes when it has forked, and with it the privilege that takes */
	bool                     is_first_victim;  /* no control group limits the memory of its forks: privilege_be_first_victim() */
	const struct sock_fprog *filter, *notifying; /* as in cell_order */
};
#define FORKER_NONE ((struct forker){ .orders = -1, .pidfd = -1 })

/* Unless there is one. It ends with its parent. That it died is seen when it is asked: EPIPE, or end of file; forker_stop() is for that, too. */
must_use int forker_start(struct forker *f, struct err *e);
/* It hears that nothing can ask it any more, and ends. A parent that reaps all its children reaps it with them. */
void         forker_stop(struct forker *f);
/* Of a parent that ends, and reaps what it has. */
void         forker_kill(struct forker *f);
