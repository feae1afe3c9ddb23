/*
 * profile_userns.h - the user namespace P of one profile, and the supervisor in it
 *
 * P's root is an id without rights on the host, from the ids that the keeper was given, and
 * so is every other id of P: a slice of the range that no other profile has.
 * Whatever is built in P is built without any right on the host. The supervisor is
 * executed in there, so that its memory belongs to P as well.
 *
 * A plain user's keeper is in a namespace of its own already, which then is the
 * P of all profiles.
 */
#pragma once
#include "id_pool.h"
#include "keeper_protocol.h"
#include "rootless.h"

/* What one profile has of the ids. Its successor of the same name has the same one: no id is in two cells. */
struct share {
	char            name[KEEPER_NAME_MAX]; /* of the profile that has it, or had it last */
	struct id_range slice;                 /* SERVICE: the first id is P's root on the host, the second that of its brig-proxy, which is not in P */
	struct id_pool  ids;                   /* of cells */
};

struct profile_userns {
	struct share *share;      /* the keeper's */
	int           supervisor; /* socket; -1 when it is dead */
	int           pidfd;      /* of the supervisor */
	int           report_fd;  /* what it says of its zygote (zygote_report.h) */
};
#define PROFILE_USERNS_NONE ((struct profile_userns){ .supervisor = -1, .pidfd = -1, .report_fd = -1 })

struct profile_userns_wishes {
	const struct keeper_setup   *setup;
	const struct keeper_profile *profile;
	const struct rootless       *rootless; /* of a plain user's keeper; else kind KEPT */
	uint32_t                     gid;      /* P's group 0: the control groups are lent to it */
	int                          lock_fd;
	int                          filter_fd, trust_fd; /* trust_fd: -1, there is none */
};

/* SERVICE: number out of so many equal ones of a block; else the whole range, whose slots are locked one by one in runtime. */
void share_of_block(struct share *ret, const struct id_range *ids, uint32_t number, uint32_t of, int lock_fd);
void share_of_file(struct share *ret, const struct id_range *ids, const char *runtime);

/* With its share. It may lose its supervisor and get another one. */
must_use int profile_userns_start(struct profile_userns *r, const struct profile_userns_wishes *w, struct err *e);
/* Also of a supervisor that is stopped: messages that it has not read are dropped, and a process that waits for it gets end of file. */
void profile_userns_stop(struct profile_userns *r);
