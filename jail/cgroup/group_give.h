/*
 * group_give.h - control groups for a service that root starts and that gives up root
 *
 * systemd gives a unit's group to its user (Delegate=). Without systemd, a
 * brigd that root starts makes a group "brigd-PID" below its own in every
 * hierarchy, moves into it and changes its owner to the keeper's account,
 * before it gives up root. When the service ends, the group stays, empty: no
 * process that is left may remove it. The next start does. A group is locked
 * (flock) for as long as the process that called group_give() lives, which
 * tells it from a leftover in any pid namespace.
 */
#pragma once
#include "err.h"

/* Hierarchies that cannot be written to are left out: group_limit() reports which controllers are missing. */
must_use int group_give(unsigned uid, unsigned gid, struct err *e);
