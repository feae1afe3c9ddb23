/*
 * zygote.h - a fork server that has a Python with its imports (fork_server.h)
 *
 * The code here calls no Python, and needs to be the only thread of its process.
 * zygote_fork() returns in a fork without privilege and with the filter on; the
 * fork takes its order after that.
 */
#pragma once
#include "fork_server.h"
#include "run_activity.h"

struct zygote {
	struct fork_server server;
	const struct run_activity *activity; /* in a fork: until it takes its spec */
	char               name[16]; /* of the interpreter's process; forks take it back */
};

struct zygote_run {
	struct child_ctx child;
	struct exec_lists lists;
	char *const     *argv, *const *envp;
	size_t           env_len; /* bytes of all entries, which are contiguous from envp[0] on, each with its NUL */
	bool             stdin_pipe;
	const char      *code; /* text of /workspace/main.py, a copy in the fork's memory; NULL: none */
	size_t           code_len;
};

/* Takes over the descriptors of fork_protocol.h, and says that it is ready. 0 or -1 with errno. */
int  zygote_start_serving(struct zygote *z);
/* True in the fork, which has given up its rights; after a failed step it reports and exits. False in the zygote. */
bool zygote_fork(const struct zygote *z, struct fork_request *request, struct zygote_run *ret);
/* In the fork: reports that it has no rights, and its CPU time, which is not charged to the program. False with errno. */
bool zygote_report_confined(const struct zygote_run *run);
/* Waits until the fork's spec has come: false. Or until other runs no longer need the CPU: true, if it was made ahead. */
bool zygote_has_time_to_rehearse(const struct zygote *z, const struct zygote_run *run);
/* The newest run of the profile has the guest runner, and so the next may have it. */
bool zygote_expects_guest_runner(const struct zygote *z);
/* In the fork: waits for its spec, and reads it. 0 or -1 with errno; does not return if the spec asks for an exec. */
int  zygote_receive_spec(struct zygote *z, struct zygote_run *run);
