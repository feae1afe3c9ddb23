/*
 * kept_zygote.h - the zygote of a profile, as its spawner keeps it
 *
 * One is started for the rootfs of the first cell, and another when that one
 * has ended or the rootfs is another. Both ends of the socket for orders are
 * kept: what launchers ask for while there is no zygote waits for the next. One
 * that ends before it is ready closes them: who asks then hears at once that
 * there is nobody, and a new one is tried after a while.
 */
#pragma once
#include "err.h"
#include "limits.h"
#include "spawner_protocol.h"
#include "store.h"

#include <sys/types.h>

struct kept_zygote {
	const struct spawner_setup *setup;
	int         filter_fd;
	int         orders[2];        /* [0]: for launchers; non-blocking */
	int         pidfd, ready_fd;  /* of the one that lives; ready_fd: until it has said so */
	int         tree_fd;          /* what it was started in */
	struct limits limits;
	char        digest[STORE_DIGEST + 1];
	double      not_before;       /* CLOCK_MONOTONIC ms */
};

/* Both stay the caller's. */
void kept_zygote_init(struct kept_zygote *z, const struct spawner_setup *setup, int filter_fd);
/* There is one for this tree, or it is not yet time. tree_fd stays the caller's; limits: sizes of what is mounted. */
void kept_zygote_want(struct kept_zygote *z, int tree_fd, const char *digest, const struct limits *limits);
/* It said that it is ready, or ended. */
void kept_zygote_hear(struct kept_zygote *z);
