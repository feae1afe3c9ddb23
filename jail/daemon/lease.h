/*
 * lease.h - the cells that the server may use without asking the monitor
 *
 * They come from the monitor and are of one profile each. The caller that takes one
 * owns it, and its descriptors. The oldest is taken first: its fork has had the time
 * to rehearse, which makes its first run fast (jail/zygote/module/main.py).
 */
#pragma once
#include "linked_list.h"
#include "monitor_protocol.h"
#include "run_spec.h"
#include "run_spec_file.h"

struct lease {
	TAILQ_ENTRY(lease) link;
	struct monitor_lease message;
	int                  fd[LEASE_FDS];
};

struct lease_box {
	TAILQ_HEAD(lease_list, lease) of[MONITOR_ALL_PROFILES_MAX]; /* the oldest first */
	size_t n, most;
};

/* files: the process's limit of open files; leases get a quarter, the rest is for clients. */
void lease_box_init(struct lease_box *b, uint64_t files);
/*
 * Takes the descriptors over. They are closed if there is no room, or no such profile: the supervisor sees that, and
 * tells the monitor.
 */
void           lease_box_add(struct lease_box *b, const struct monitor_lease *message, int fds[LEASE_FDS]);
struct lease *lease_box_take(struct lease_box *b, unsigned profile); /* NULL: there is none */
uint64_t       lease_box_count_of_profile(const struct lease_box *b, unsigned profile);
/* A lease that was taken becomes the next one to be taken. */
void lease_box_put_back(struct lease_box *b, struct lease *t);
/* Closes the lease that the monitor has recalled, if it is still here. */
void lease_box_drop_recalled(struct lease_box *b, const struct monitor_lease *message);
void lease_box_free(struct lease_box *b);

/*
 * Sends the spec to the supervisor and to the fork that waits. tools: the program's end of their socket, if the run has
 * one; borrowed. False: the lease is void, and nothing has begun.
 */
must_use bool lease_send_run_spec(const struct lease *t, const struct run_spec *spec, const char *exec_args,
				  const char *code, int tools);
void lease_free(struct lease *t); /* closes the descriptors that were not taken; t may be NULL */
