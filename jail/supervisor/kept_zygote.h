/*
 * kept_zygote.h - the zygote of a profile, as its supervisor keeps it
 *
 * One is started for the rootfs of the first cell, and another when that one
 * has ended or the rootfs is another. Both ends of the socket for orders are
 * kept: what is asked for while there is no zygote waits for the next. When a
 * zygote ends before it is ready, both are closed: a cell that asks then gets end
 * of file at once, and another zygote is started after a while.
 *
 * After so many cells, or so long, a successor is started beside it; when that
 * is ready the old one takes no more orders, and ends; what it has forked goes on.
 */
#pragma once
#include "base_mounts.h"
#include "err.h"
#include "supervisor_protocol.h"
#include "store.h"
#include "warm.h"
#include "zygote_report.h"

#include <poll.h>
#include <sys/types.h>

/* pidfd -1: there is none. ready_fd: until it has said so. */
struct one_zygote {
	pid_t    pid;
	int      pidfd, ready_fd;
	double   started; /* CLOCK_MONOTONIC ms */
	uint32_t cells;
};
#define ONE_ZYGOTE_NONE ((struct one_zygote){ .pidfd = -1, .ready_fd = -1 })

struct kept_zygote {
	const struct supervisor_setup *setup;
	struct one_zygote now, next;
	int         filter_fd;
	struct base_mounts *mounts;   /* borrowed */
	int         orders[2];        /* [0]: where forks are asked for; non-blocking */
	bool        is_up;            /* a zygote has served since orders[] were made */
	uint32_t    generation;       /* of `now` */
	bool        is_first_victim;  /* no control group limits the memory of its forks: privilege_be_first_victim() */
	int         tree_fd;          /* what it was started in */
	char        digest[STORE_DIGEST + 1];
	double      not_before;       /* CLOCK_MONOTONIC ms */
	struct zygote_report report, told; /* told: as it was written last */
	double      measured;         /* when its memory was */
};

/* All stay the caller's. */
void kept_zygote_init(struct kept_zygote *z, const struct supervisor_setup *setup, struct base_mounts *mounts, int filter_fd);
/* As it is now. The descriptors stay ours. */
struct zygote_place kept_zygote_place(const struct kept_zygote *z);
/* There is one for this tree, or it is not yet time. tree_fd stays the caller's. true: one was started, and is to be watched. */
must_use bool kept_zygote_want(struct kept_zygote *z, int tree_fd, const char *digest);
/* It serves, and its memory was not looked at for a while; is_quiet: there is time to. Its pages are walked for that. */
must_use bool kept_zygote_must_measure(const struct kept_zygote *z, bool is_quiet);
void kept_zygote_measure(struct kept_zygote *z, const struct waiting_forks *waiting);
/* How it is, into the keeper's file, when that is news. */
void kept_zygote_tell(struct kept_zygote *z, int report_fd);
enum { KEPT_ZYGOTE_FDS = 2 };
/* To be polled for reading; and what to do with those that can be read: one is ready, or has ended. */
void kept_zygote_watch(const struct kept_zygote *z, struct pollfd fds[KEPT_ZYGOTE_FDS]);
void kept_zygote_hear(struct kept_zygote *z, const struct pollfd fds[KEPT_ZYGOTE_FDS]);
