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
 * The user namespace of a cell belongs to the cell's own id: what the kernel counts per
 * owner (inotify instances, queued signals, locked memory) is then not taken
 * from root and from the other cells. v1 groups are joined by a process whose real
 * and effective id are the same. fsuid stays 0: with CLONE_INTO_CGROUP the kernel looks at who
 * may write to the group. The capabilities stay too: hosts that keep user
 * namespaces from unprivileged users (Debian, Ubuntu) ask for them. Its owner
 * may enter the cell without CAP_SYS_PTRACE, which containers do not have.
 */
must_use int privilege_become_owner(uint32_t id, struct err *e);
must_use int privilege_become_root(struct err *e);

/* What the kernel kills before all else when the host's memory is used up, with every fork. Where there is no /proc nothing changes. Not traceable afterwards. */
void privilege_be_first_victim(void);

/* CAP_SETUID and CAP_SETGID, and in force: what it takes to map ranges of ids. */
bool privilege_has_id_caps(void);

/* uid 0 with CAP_SYS_ADMIN and CAP_NET_ADMIN. Without them, as in most containers, it builds jails as plain users do. */
must_use int privilege_is_root(void); /* -1 with errno: the capabilities cannot be read */

/* READ_CAPS: to read any file, and to change to an account that may not. */
enum privilege_kept { PRIVILEGE_NO_CAPS, PRIVILEGE_ID_CAPS, PRIVILEGE_READ_CAPS };

/* None is left, and none comes with what is executed, also of uid 0 in a namespace. The account stays. */
must_use int privilege_leave_caps(struct err *e);
/* Another account, for good, without groups; of the capabilities, those that are kept and no other. */
must_use int privilege_become(unsigned uid, unsigned gid, enum privilege_kept kept, struct err *e);
/* Nothing that is executed from here on has more: what is not kept is in no set, and no_new_privs is set. */
must_use int privilege_lock(enum privilege_kept kept, struct err *e);

/* No supplementary group. 0 or -1 with errno. */
must_use int privilege_leave_groups(void);
/* What we make from here on belongs to this group; the one that we had still opens what it opened. 0 or -1 with errno. */
must_use int privilege_make_for_group(unsigned gid);

/*
 * Traceable by our own user, or by nobody. In a user namespace a launcher that is not traceable cannot write the id
 * maps of its child: their files in /proc belong to the host's root then.
 */
must_use int privilege_show(struct err *e);
must_use int privilege_hide(struct err *e);
