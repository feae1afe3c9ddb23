/*
 * realm.h - the user namespace P of one profile, and the spawner in it
 *
 * P's root is a nobody of the host, from the ids that the keeper was given, and
 * so is every other id of P: a slice of the range that no other profile has.
 * Whatever is built in P is built without any right on the host. The spawner is
 * executed in there, so that its memory belongs to P as well.
 *
 * A plain user's keeper is in a namespace of its own already, which then is the
 * P of all profiles.
 */
#pragma once
#include "keeper_protocol.h"
#include "id_pool.h"
#include "outer.h"

struct realm {
	uint32_t       root;    /* P's root on the host: the first id of the slice */
	struct id_pool ids;     /* of its cells */
	int            spawner; /* socket; -1 when it is dead */
	int            pidfd;   /* of the spawner */
	int            report_fd; /* what it says of its zygote (zygote_report.h) */
};
#define REALM_NONE ((struct realm){ .spawner = -1, .pidfd = -1, .report_fd = -1 })

struct realm_wishes {
	const struct keeper_setup   *setup;
	const struct keeper_profile *profile;
	const struct outer          *outer; /* of a plain user's keeper; else kind KEPT */
	struct id_range              ids;   /* of the whole keeper */
	uint32_t                     number, of; /* which slice */
	uint32_t                     gid;   /* P's group 0: the control groups are lent to it */
	int                          lock_fd;
	int                          filter_fd, self_fd; /* the keeper's own file */
};

/* Its ids stay in use: a realm is prepared once, and may lose its spawner and get another one. */
void         realm_prepare(struct realm *ret, const struct realm_wishes *w);
must_use int realm_start(struct realm *r, const struct realm_wishes *w, struct err *e);
/* Of a spawner that is stopped, too: what it was told and did not read is forgotten, and who waits for it hears the end of his socket. */
void         realm_stop(struct realm *r);
