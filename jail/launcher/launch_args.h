/* launch_args.h - what is to be run, as the server has decided it */
#pragma once
#include "run_spec.h"
#include "mount_plan.h"
#include "net_listeners.h"
#include "policy_bundle.h"
#include "profile.h"

/* Everything is borrowed for the call. */
struct launch_args {
	const struct profile       *profile;
	const struct policy_bundle *policy; /* of a private run */
	unsigned                    number; /* of a run of a service: the monitor's number for the profile */
	const struct limits        *limits;
	struct exec_args           *exec_args; /* sealed when it is sent to another process */
	const char                 *exec_text;
	int                         code_fd;   /* /workspace/main.py, a sealed memory file; -1: a command */
	uint32_t                    code_len;
	const char                 *code;
	const char *const          *shown; /* "workspace/NAME" for each of shown_fd */
	const int                  *shown_fd;
	size_t                      shown_len;
	int                         files_fd;  /* where its files come from and go to, see files.h; -1: it has none */
	int                         tools_fd;  /* the program's end of the socket to its tools; -1: it has none */
	const struct net_listeners *listeners; /* of a private run; NULL: no network. A service's are the profile's */
	int                         trust_fd;  /* of a private run: certificates, PEM, sealed; -1: only the rootfs's own */
	bool                        stdin_pipe, result_pipe, cold, terminals;
};

/* The message to the process that watches the run. asked: when the run was asked for, CLOCK_MONOTONIC ms. */
void launch_args_to_run_spec(struct run_spec *ret, const struct launch_args *o, double asked);
/* The descriptors of that message (run_spec.h), borrowed; returns how many. o->exec_args is sealed; client: its socket. */
enum { RUN_ORDER_FDS = 4 };
size_t launch_args_collect_fds(int fds[RUN_ORDER_FDS], const struct launch_args *o, int client);
