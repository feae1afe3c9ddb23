/*
 * zygote.h - the loop of a zygote: hear an order, fork into its cell, tell how the program ended
 *
 * It knows no Python, and is the only thread of its process. A fork comes back
 * as a program without privilege, with the filter on.
 */
#pragma once
#include "zygote_protocol.h"

#include <signal.h>

enum { ZYGOTE_RUNS_MAX = 1024 };

struct zygote {
	int               signals; /* signalfd: SIGCHLD, SIGTERM */
	struct sock_fprog filter;
	unsigned          landlock_abi;
	struct sigaction  kept[NSIG]; /* what the interpreter had set up */
	char              name[16]; /* which the interpreter had, and a program has */
	bool              is_last; /* nobody is left who could ask, or there is a successor */
	size_t            runs;
	struct {
		pid_t pid;
		int   answer;
	} run[ZYGOTE_RUNS_MAX];
};

struct zygote_request {
	struct zygote_order order;
	int                 fds[ZYGOTE_ORDER_FDS_MAX];
	size_t              n;
};

struct zygote_run {
	char *const *argv, *const *envp;
	bool         stdin_pipe;
};

/* Takes over the descriptors of zygote_protocol.h, and says that it is ready. 0 or -1 with errno. */
int  zygote_open(struct zygote *z);
/* Tells the ends of programs meanwhile. False: nobody is left who could ask, and the last program has ended. */
bool zygote_await(struct zygote *z, struct zygote_request *ret);
/* True in the fork, when it has become a program. What it could not become it has told, and is gone. */
bool zygote_fork(struct zygote *z, struct zygote_request *request, struct zygote_run *ret);
