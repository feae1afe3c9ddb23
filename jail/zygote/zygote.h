/*
 * zygote.h - a fork server that has a Python with its imports (fork_server.h)
 *
 * It knows no Python, and is the only thread of its process. A fork comes back
 * as a process without privilege, with the filter on, that takes its order then.
 */
#pragma once
#include "fork_server.h"

struct zygote {
	struct fork_server server;
	char               name[16]; /* which the interpreter had, and a program has */
};

struct zygote_run {
	struct child_ctx child;
	struct exec_lists lists;
	char *const     *argv, *const *envp;
	size_t           env_len; /* its entries lie one behind the other from the first one on, each with its NUL */
	bool             stdin_pipe;
	const char      *code; /* of /workspace/main.py, in our own memory; NULL: none */
	size_t           code_len;
};

/* Takes over the descriptors of fork_protocol.h, and says that it is ready. 0 or -1 with errno. */
int  zygote_open(struct zygote *z);
/* True in the fork, when it has given everything up. What it could not do it has told, and is gone. */
bool zygote_fork(const struct zygote *z, struct fork_request *request, struct zygote_run *ret);
/* In the fork: says that it stands, and how much CPU time it has used that is not its program's. False with errno. */
bool zygote_stand(const struct zygote_run *run);
/* A fork ahead of its order, which has not come for a while. */
bool zygote_is_idle(const struct zygote_run *run);
/* Takes its order, when that comes. 0 or -1 with errno; does not return when it is to be executed. */
int  zygote_take_order(struct zygote_run *run);
