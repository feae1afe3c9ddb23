/*
 * profile_userns.h - the user namespace P of one profile, and the supervisor in it
 *
 * All ids of P, its root among them, are ids without rights on the host: a slice of
 * the monitor's range that no other profile has. Whatever is built in P is built
 * without any right on the host. The supervisor is executed inside P, so that its
 * memory belongs to P as well.
 *
 * A plain user's monitor is in a user namespace of its own already, which is the
 * P of all its profiles.
 */
#pragma once
#include "id_pool.h"
#include "monitor_protocol.h"
#include "rootless.h"

/* The ids of one profile. One that replaces another of the same name has its share: no id is in two cells. */
struct share {
	char            name[MONITOR_NAME_MAX]; /* of the profile that has the share, or had it last */
	struct id_range slice;                  /* SERVICE: first P's root on the host, then its brig-proxy's, not in P */
	struct id_pool  ids;                    /* of cells */
};

struct profile_userns {
	struct share *share;      /* borrowed */
	int           supervisor; /* socket to the supervisor; -1: there is none */
	int           pidfd;      /* of the supervisor */
	int           report_fd;  /* where the supervisor writes about its zygote (zygote_report.h) */
};
#define PROFILE_USERNS_NONE ((struct profile_userns){ .supervisor = -1, .pidfd = -1, .report_fd = -1 })

struct profile_userns_options {
	const struct monitor_setup   *setup;
	const struct monitor_profile *profile;
	const struct rootless        *rootless; /* of a plain user's monitor; else kind KEPT */
	uint32_t                      gid;      /* host gid of P's group 0, to which the control groups are lent */
	int                           lock_fd;
	int                           filter_fd, trust_fd; /* trust_fd: -1, there is none */
};

/* SERVICE: part `number` of `of` parts of a block. Else the whole range, whose slots are locked one by one in runtime. */
void id_share_init_slice(struct share *ret, const struct id_range *ids, uint32_t number, uint32_t of, int lock_fd);
void id_share_init_whole_range(struct share *ret, const struct id_range *ids, const char *runtime);

/* r->share is set. May be called again after profile_userns_kill(). */
must_use int profile_userns_start(struct profile_userns *r, const struct profile_userns_options *w, struct err *e);
/* Kills the supervisor, even a stopped one. The other ends of descriptors that it has not read get end of file. */
void profile_userns_kill(struct profile_userns *r);
