/*
 * privilege.h - what a process of ours gives up when it no longer needs it.
 *
 * uid 0 stays where it was uid 0: it owns the control groups that are to be
 * removed. CAP_KILL stays too: a cell has ids of its own, and ends by our
 * signal. Everything else that a capability would add is gone, for good.
 */
#pragma once
#include "err.h"

/* Of what we have: a plain user's brig has nothing to lose. */
must_use int privilege_drop(struct err *e);

/* Every permitted capability works again: the kernel switches them off when the effective user is no longer root. */
must_use int privilege_keep_effective(struct err *e);

/*
 * No groups, no privileged place in the OOM killer's list, no crash handler: the cell inherits all of it. On the host
 * we are not traceable from here on; in a namespace of our own the kernel may keep us from leaving groups: *no_groups
 * tells.
 */
must_use int privilege_forget_caller(bool on_host, bool *no_groups, struct err *e);

/*
 * Traceable by our own user, or by nobody. In a user namespace a launcher that is not traceable cannot write the id
 * maps of its child: their files in /proc belong to the host's root then.
 */
must_use int privilege_show(struct err *e);
must_use int privilege_hide(struct err *e);
