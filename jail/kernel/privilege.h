/*
 * privilege.h - what a process of ours gives up when it no longer needs it.
 *
 * uid 0 stays where it was uid 0: it owns the control groups that are to be
 * removed. CAP_KILL stays too: a cell has ids of its own, and ends by our
 * signal. Everything else that a capability would add is gone, for good.
 */
#pragma once
#include "err.h"

must_use int privilege_drop(struct err *e);

/* Every permitted capability works again: the kernel switches them off when the effective user is no longer root. */
must_use int privilege_keep_effective(struct err *e);

/* Not traceable, no groups, no privileged place in the OOM killer's list, no crash handler: the cell inherits all of it. */
must_use int privilege_forget_caller(struct err *e);
