/*
 * group_give.h - control groups for somebody who is not root
 *
 * systemd gives a unit's group to its user (Delegate=). Where nobody does, root
 * makes a group "brigd-PID" below his own, in every hierarchy, moves himself
 * into it and gives it away, before he becomes that user. It stays, empty, when
 * he is gone: nobody who is left could remove it. The next start does. A group
 * is locked (flock) for as long as the process that called group_give() lives:
 * that tells it from a leftover, in any pid namespace.
 */
#pragma once
#include "err.h"

/* Hierarchies that cannot be written to are left out: what is missing then is said by who needs it. */
must_use int group_give(unsigned uid, unsigned gid, struct err *e);
