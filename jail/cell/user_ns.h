/*
 * user_ns.h - the user namespace of one slot
 *
 * It maps the slot's two ids, allows no namespaces below it, and owns nothing: all other namespaces of a cell belong
 * to the user namespace of the process that builds cells, so capabilities inside give no power over them. It is made
 * once for a slot, and PID 1 of each cell of that slot enters it.
 */
#pragma once
#include "err.h"
#include "slot.h"

enum { USER_NS_PROGRAM_ID = 1000 };

/* True: PID 1 and the program have the same id, USER_NS_PROGRAM_ID as seen inside. False: PID 1 has 0 inside. */
bool         user_ns_has_one_id(const struct slot *slot);
/* The caller is root in the user namespace with the slot's ids. quotas: /proc/sys/user is writable. The fd is the caller's. */
must_use int user_ns_make(const struct slot *slot, bool quotas, struct err *e);
