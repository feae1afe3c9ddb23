/* privilege.h - what a process of ours gives up when it no longer needs it. */
#pragma once
#include "err.h"

/*
 * Drops every capability but CAP_KILL, for good, and sets no_new_privs. CAP_KILL stays, if the process has it, because
 * a cell has ids of its own and a signal ends it. uid 0 stays uid 0, because it owns the control groups that are to be
 * removed.
 */
must_use int privilege_keep_only_cap_kill(struct err *e);

/* Makes every permitted capability effective again: the kernel clears the effective set when the effective uid is no longer 0. */
must_use int privilege_raise_effective_caps(struct err *e);

/*
 * Gives up what the cell would inherit from the caller of brig: supplementary groups, a real-time policy, a negative
 * OOM score, a core limit that starts the host's crash handler. On the host the process is not traceable afterwards. In
 * a user namespace the kernel may refuse to change groups: *no_groups: none is left.
 */
must_use int privilege_forget_caller(bool on_host, bool *no_groups, struct err *e);

/*
 * Makes `id` the real and effective uid, so that the user namespace that is cloned next belongs to the cell's own id:
 * what the kernel counts per owner (inotify instances, queued signals, locked memory) is then not taken from root and
 * from other cells. The owner may enter the cell without CAP_SYS_PTRACE, which containers do not have. A process joins
 * v1 groups only if its real and effective uid are equal. fsuid stays 0: for CLONE_INTO_CGROUP the kernel checks
 * whether the process may write to the group. The capabilities stay: hosts that keep user namespaces from unprivileged
 * users (Debian, Ubuntu) ask for them. privilege_restore_root_uid() undoes it.
 */
must_use int privilege_set_userns_uid(uint32_t id, struct err *e);
must_use int privilege_restore_root_uid(struct err *e);

/*
 * The OOM killer takes this process and its later children first when the host is out of memory. Without /proc nothing
 * changes. Not traceable afterwards.
 */
void privilege_set_max_oom_score(void);

/* CAP_SETUID and CAP_SETGID are effective: they allow to map ranges of ids. */
bool privilege_has_id_caps(void);

/* uid 0 with CAP_SYS_ADMIN and CAP_NET_ADMIN. Without them, as in most containers, uid 0 builds jails as plain users do. */
must_use int privilege_check_is_root(void); /* -1 with errno: the capabilities cannot be read */

/* ID_CAPS: CAP_SETUID and CAP_SETGID. READ_CAPS: these, and CAP_DAC_READ_SEARCH to read any file. */
enum privilege_kept { PRIVILEGE_NO_CAPS, PRIVILEGE_ID_CAPS, PRIVILEGE_READ_CAPS };

/* Empties all capability sets, and the bounding set as far as CAP_SETPCAP allows, so that uid 0 of a namespace gets none by exec. */
must_use int privilege_drop_caps(struct err *e);
/* Changes to another account, for good, without supplementary groups; only the kept capabilities remain. */
must_use int privilege_switch_to_account(unsigned uid, unsigned gid, enum privilege_kept kept, struct err *e);
/* Sets no_new_privs, so that no exec adds capabilities. For an account other than root, only ID_CAPS outlive an exec: they become ambient. */
must_use int privilege_set_no_new_privs(enum privilege_kept kept, struct err *e);

/* Leaves all supplementary groups. 0 or -1 with errno. */
must_use int privilege_drop_groups(void);
/* Files that we make from now on belong to gid; our present gid becomes a supplementary group, so access by it stays. 0 or -1 with errno. */
must_use int privilege_set_fs_group(unsigned gid);

/*
 * show: our own user may trace this process. hide: no unprivileged process may. In a user namespace a launcher that is
 * not traceable cannot write the id maps of its child, because their files in /proc then belong to the host's root.
 */
must_use int privilege_make_dumpable(struct err *e);
must_use int privilege_make_undumpable(struct err *e);
