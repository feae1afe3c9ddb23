/*
 * zygote_process.h - the zygote of a profile, as its supervisor keeps it
 *
 * The first zygote is started with the first cell, in that cell's rootfs; another
 * one when it has ended, or the rootfs has changed. The supervisor keeps both ends
 * of the socket for requests: one that is sent while there is no zygote waits for
 * the next. When a zygote ends before it is ready, or too many have ended one after
 * the other, both ends are closed: cells whose requests are in the socket get end of
 * file, and another zygote is started after a while.
 *
 * After zygote_cells cells, or zygote_ms, a successor is started beside the zygote.
 * When it is ready, the old zygote takes no more requests and ends; its forks go on.
 */
#pragma once
#include "base_mounts.h"
#include "err.h"
#include "run_activity.h"
#include "supervisor_protocol.h"
#include "store.h"
#include "warm.h"
#include "zygote_report.h"

#include <poll.h>
#include <sys/types.h>

/* pidfd -1: there is none. ready_fd: a pipe; -1: it has reported that it is ready. */
struct one_zygote {
	pid_t    pid;
	int      pidfd, ready_fd;
	double   started; /* CLOCK_MONOTONIC ms */
	uint32_t cells;
};
#define ONE_ZYGOTE_NONE ((struct one_zygote){ .pidfd = -1, .ready_fd = -1 })

struct zygote_process {
	const struct supervisor_setup *setup;
	struct one_zygote now, next;
	int         filter_fd, activity_fd;
	struct run_activity *activity; /* what activity_fd shows to forks */
	struct base_mounts *mounts;  /* borrowed */
	int         requests[2];     /* [0]: for requests; [1]: the zygote reads them; non-blocking */
	bool        is_up;           /* a zygote has served since orders[] were made */
	uint32_t    generation;      /* of `now` */
	/* no control group limits the memory of its forks: privilege_set_max_oom_score() */
	bool        is_oom_target;
	int         tree_fd;         /* the rootfs that it was started in */
	char        digest[STORE_DIGEST + 1];
	double      not_before, next_not_before; /* CLOCK_MONOTONIC ms: none, and no successor, is started before */
	double      ends_until;       /* CLOCK_MONOTONIC ms: when the ends of zygotes so far count no more */
	struct zygote_report report, told; /* told: what was written last */
	double      measured;         /* CLOCK_MONOTONIC ms: when its memory was measured */
};

/* setup and mounts are borrowed; filter_fd stays open. */
must_use int zygote_process_init(struct zygote_process *z, const struct supervisor_setup *setup,
				 struct base_mounts *mounts, int filter_fd, struct err *e);
/* For ready forks (run_activity.h). newest_ms: CLOCK_MONOTONIC, when the newest run under way began. */
void zygote_process_set_activity(struct zygote_process *z, double newest_ms, bool has_guest_runner);
void zygote_process_set_no_activity(struct zygote_process *z);
/* For a cell with this rootfs; NONE if the zygote has another, and so other files. The descriptors are borrowed. */
struct zygote_status zygote_process_status(const struct zygote_process *z, const char *digest);
/*
 * For each cell that a zygote may fork into: starts a zygote of this tree if there is none, or a successor if it is
 * time. tree_fd stays the caller's. True: one was started, and is to be watched.
 */
must_use bool zygote_process_ensure_started(struct zygote_process *z, int tree_fd, const char *digest);
/* True: it serves, and is_quiet or was not measured for a while. To measure it, the kernel walks its pages. */
must_use bool zygote_process_is_measurement_due(const struct zygote_process *z, bool is_quiet);
void zygote_process_measure_memory(struct zygote_process *z, const struct waiting_forks *waiting);
/* Writes the report into the monitor's file (zygote_report.h), if it has changed. */
void zygote_process_write_report(struct zygote_process *z, int report_fd);
enum { ZYGOTE_PROCESS_FDS = 2 };
/* What to poll for reading; and, after poll(), handles the events: a zygote is ready, or has ended. */
void zygote_process_fill_pollfds(const struct zygote_process *z, struct pollfd fds[ZYGOTE_PROCESS_FDS]);
void zygote_process_handle_events(struct zygote_process *z, const struct pollfd fds[ZYGOTE_PROCESS_FDS]);
