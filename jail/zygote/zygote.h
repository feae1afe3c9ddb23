/*
 * zygote.h - the loop of a zygote: know the cells that wait, and fork into them
 *
 * It knows no Python, and is the only thread of its process. A fork comes back
 * as a process without privilege, with the filter on, that takes its order then.
 */
#pragma once
#include "zygote_protocol.h"

#include <signal.h>

enum { ZYGOTE_CELLS_MAX = 1024 };

/* A cell as it was registered. */
struct zygote_request {
	struct zygote_order order;
	int                 fds[ZYGOTE_ORDER_FDS_MAX];
	size_t              n;
};

struct zygote {
	int               signals; /* signalfd: SIGTERM */
	int               epoll;
	struct sock_fprog filter, telling; /* as in run_order */
	unsigned          landlock_abi;
	struct sigaction  kept[NSIG]; /* what the interpreter had set up */
	char              name[16]; /* which the interpreter had, and a program has */
	bool              is_last; /* nothing is left that could ask, or there is a successor */
	size_t            n;
	struct zygote_request **waiting; /* for their orders; ZYGOTE_CELLS_MAX of them; a fork finds zeros */
};

struct zygote_run {
	struct child_ctx child;
	char *const     *argv, *const *envp;
	bool             stdin_pipe;
	const char      *code; /* of /workspace/main.py, in our own memory; NULL: none */
	size_t           code_len;
};

/* Takes over the descriptors of zygote_protocol.h, and says that it is ready. 0 or -1 with errno. */
int  zygote_open(struct zygote *z);
/* *ret: to be forked now; zygote_fork() frees it. False: nothing is left that could ask, or there is a successor. */
bool zygote_await(struct zygote *z, struct zygote_request **ret);
/* True in the fork, when it has given everything up. What it could not do it has told, and is gone. */
bool zygote_fork(struct zygote *z, struct zygote_request *request, struct zygote_run *ret);
/* In the fork: says that it stands, and how much CPU time it has used that is not its program's. False with errno. */
bool zygote_stand(const struct zygote_run *run);
/* A fork ahead of its order, which has not come for a while. */
bool zygote_is_idle(const struct zygote_run *run);
/* Takes its order, when that comes. 0 or -1 with errno. */
int  zygote_take_order(struct zygote_run *run);
