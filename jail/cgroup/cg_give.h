/*
 * cg_give.h - control groups for a service that root starts and that gives up root
 *
 * systemd gives a unit's group to its user (Delegate=). Without systemd, a
 * brigd that root starts makes a group "brigd-PID" below its own in every
 * hierarchy, moves into it and changes its owner to the monitor's account,
 * before it gives up root. When the service ends, its sweeper removes the
 * group; what it could not remove, the next start does. A group is locked
 * (flock) for as long as the process that called cg_give_to_monitor() lives, which
 * distinguishes it from a leftover in any pid namespace.
 */
#pragma once
#include "cg.h"

/* The groups that were made. */
struct cg_given {
	int    above[CG_TREES_MAX]; /* the group above, owned */
	char   name[CG_TREES_MAX][40];
	size_t n;
};
#define CG_GIVEN_NONE ((struct cg_given){ .n = 0 })

/* Hierarchies that cannot be written to are left out: cg_set_limits() reports which controllers are missing. */
must_use int cg_give_to_monitor(unsigned uid, unsigned gid, struct cg_given *ret, struct err *e);
void         cg_given_close(struct cg_given *g);
