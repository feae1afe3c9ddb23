/*
 * fork_server.h - a process that only forks: it knows the cells that wait for a program, and forks one into each
 *
 * There are two kinds. A zygote is one that has a Python with its imports: its forks stay what they are, and execute bytecode, unless their order says otherwise.
 * A plain one is a fork of the process that watches the cells: its forks execute a file of the rootfs. The protocol is the same
 * (fork_protocol.h), and so are the steps that a fork takes (child.h).
 */
#pragma once
#include "fork_protocol.h"

enum { FORK_SERVER_CELLS_MAX = 1024 };

/* A cell as it was registered. */
struct fork_request {
	struct fork_order order;
	int               fds[FORK_ORDER_FDS_MAX];
	size_t            n;
};

struct fork_server {
	int               orders;  /* where cells are registered */
	int               signals; /* signalfd: SIGTERM */
	int               epoll;
	struct sock_fprog     filter, notifying; /* as in cell_order */
	bool              is_last; /* nothing is left that could ask, or there is a successor */
	size_t            n;
	struct fork_request **waiting; /* for their orders; FORK_SERVER_CELLS_MAX of them; a fork finds zeros */
};

/* orders and the filters are set. 0 or -1 with errno. */
must_use int fork_server_open(struct fork_server *s);
/* *ret: to be forked now. False: nothing is left that could ask, or there is a successor. */
must_use bool fork_server_await(struct fork_server *s, struct fork_request **ret);
/* 0 in the fork, which still has all of its parent's; else what it could do it has told, and the request is freed. */
must_use pid_t fork_server_fork(struct fork_request *r);
/* In the fork: what its steps need to know. lists: room. */
void fork_server_fill(struct child_ctx *ret, struct exec_lists *lists, const struct fork_server *s, const struct fork_request *r);
