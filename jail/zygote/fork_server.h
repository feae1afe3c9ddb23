/*
 * fork_server.h - a process that only forks: it knows the cells that wait for a program, and forks one into each
 *
 * There are two kinds. A zygote has a Python with its imports: its forks run bytecode without an exec, unless their
 * order says that they execute. A forker is a fork of the process that watches the cells: its forks execute a file of
 * the rootfs. Both speak the same protocol (fork_protocol.h), and their forks take the same steps (child.h).
 */
#pragma once
#include "fork_protocol.h"

enum { FORK_SERVER_CELLS_MAX = 1024 };

/* A cell as it was registered. */
struct fork_request {
	struct fork_params params;
	int                fds[FORK_REQUEST_FDS_MAX];
	size_t             n;
};

struct fork_server {
	int               requests; /* where cells are registered */
	int               signals; /* signalfd: SIGTERM */
	int               epoll;
	struct sock_fprog     filter, notifying; /* as in cell_spec */
	bool              is_last; /* no request can come any more, or a successor takes them */
	size_t            n;
	struct fork_request **waiting; /* cells without a spec yet: n of FORK_SERVER_CELLS_MAX; zeros in a fork */
};

/* The caller has set orders and the filters. 0 or -1 with errno. */
must_use int fork_server_open(struct fork_server *s);
/* Waits for a cell to fork into now: *ret. False: no request can come any more, or a successor takes them. */
must_use bool fork_server_await_request(struct fork_server *s, struct fork_request **ret);
/* 0 in the fork, which still has all of its parent. In the parent the result was sent, and the request is freed. */
must_use pid_t fork_server_fork(struct fork_request *r);
/*
 * The same for a server that ends then, and without a copy: the fork runs run(r, arg), which does not return, in this
 * process's memory until its exec, and this process waits for that. No other program may depend on the server: if
 * the cell has no memory left, the kernel may end both, because the fork is not this process's child (CLONE_PARENT).
 */
typedef void fork_server_run(const struct fork_request *r, const void *arg);
void fork_server_run_last(struct fork_request *r, fork_server_run *run, const void *arg);
/* In the fork: fills in what its steps need. lists: memory for the texts of its order. */
void fork_server_fill_child(struct child_ctx *ret, struct exec_lists *lists, const struct fork_server *s,
		      const struct fork_request *r);
