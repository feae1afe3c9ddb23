/*
 * probe_kit.h - what probe functions are written with. For jail/doctor/probe*.c only.
 *
 * did() takes the result of one system call and returns true when it worked.
 * Otherwise it writes the finding (what was tried, errno, layer, fix) and
 * returns false. The other functions do likewise, so that a probe is one chain
 * of &&.
 */
#pragma once
#include "probe.h"

#include <errno.h>

#define DEFAULT_PROFILE "basic"

struct probe {
	const struct probe_row    *row;
	const struct surroundings *at;
	struct finding             finding;
};

bool did(struct probe *p, long r, const char *fmt, ...) printf_like(3, 4);

/* Writes the finding of a refusal of which more is known, and returns false. config, since and unit come from the row when they are NULL. */
bool did_refused(struct probe *p, struct refusal r, const char *fmt, ...) printf_like(3, 4);

/* Findings in words instead of an errno. probe_missing() returns false; probe_degraded() and probe_detail() return true. */
bool probe_missing(struct probe *p, const char *cause, const char *fix);
bool probe_degraded(struct probe *p, const char *cause, const char *fix);
bool probe_advise(struct probe *p, const char *fix); /* replaces the fix of the finding by a better one; returns false */
bool probe_detail(struct probe *p, const char *fmt, ...) printf_like(2, 3);

/* mount(); when it fails, it also tries the twin (refusal.h). */
bool mounted(struct probe *p, const char *what, const char *on, const char *type, unsigned long flags, const char *options);

/*
 * A room: namespaces of our own to try things in. A user namespace comes
 * first, as in real jails. If it cannot be made, or its maps cannot be written
 * because there is no procfs, a process with CAP_SYS_ADMIN goes on without it:
 * one missing thing must not make every row fail.
 */
bool room_enter(struct probe *p, int flags);
bool room_unshare(struct probe *p, int flags); /* each flag in a call of its own; writes the finding of a refusal */
bool room_map_self(struct probe *p);           /* maps our uid and gid to 0, and no others */
bool room_become_child(struct probe *p);       /* fork; the child goes on (and reports), the parent waits */
bool lifeline_open(struct probe *p);           /* called before a probe: a pipe whose end of file tells helpers that the probe has ended */
_Noreturn void wait_for_death(void);           /* for helpers: waits for a signal or the end of the probe, even if it has ended already */
bool room_dir(struct probe *p);                /* chdir to an empty tmpfs; needs CLONE_NEWNS */

bool has_procfs(void); /* whether /proc is a procfs */
/* Id maps are files of /proc: without it, writes the finding and returns false. */
bool needs_procfs(struct probe *p);

void groups_sweep(const struct surroundings *at); /* removes what a killed probe left in the cgroup tree */

/* The rows' functions, by file. */
bool probe_user_namespace(struct probe *p); /* probe_namespaces.c */
bool probe_id_range(struct probe *p);
bool probe_mount_namespace(struct probe *p);
bool probe_pid_namespace(struct probe *p);
bool probe_net_namespace(struct probe *p);
bool probe_ipc_namespace(struct probe *p);
bool probe_uts_namespace(struct probe *p);
bool probe_cgroup_namespace(struct probe *p);
bool probe_clone3(struct probe *p);
bool probe_setns_pidfd(struct probe *p);
bool probe_fork_into_pid_ns(struct probe *p);

bool probe_proc(struct probe *p); /* probe_mounts.c */
bool probe_tmpfs(struct probe *p);
bool probe_fsmount(struct probe *p);
bool probe_open_tree(struct probe *p);
bool probe_mount_setattr(struct probe *p);
bool probe_pivot_root(struct probe *p);
bool probe_openat2(struct probe *p);
bool probe_device_nodes(struct probe *p);

bool probe_close_range(struct probe *p); /* probe_processes.c */
bool probe_memfd_exec(struct probe *p);
bool probe_pidfd(struct probe *p);

bool probe_no_new_privs(struct probe *p); /* probe_confinement.c */
bool probe_seccomp(struct probe *p);
bool probe_landlock(struct probe *p);
bool probe_capabilities(struct probe *p);
bool probe_keyring(struct probe *p);

bool probe_memory_limit(struct probe *p); /* probe_groups.c */
bool probe_pids_limit(struct probe *p);
bool probe_cpu_limit(struct probe *p);
bool probe_cpu_time(struct probe *p);
bool probe_io_figures(struct probe *p);
bool probe_swap_limit(struct probe *p);
bool probe_memory_peak(struct probe *p);
bool probe_pids_peak(struct probe *p);
bool probe_clone_into_group(struct probe *p);
bool probe_group_kill(struct probe *p);
bool probe_group_version(struct probe *p);
bool probe_socket_memory(struct probe *p);

bool probe_profile(struct probe *p); /* probe_places.c */
bool probe_rootfs(struct probe *p);
bool probe_runtime_dir(struct probe *p);
bool probe_id_pool(struct probe *p);
bool probe_network(struct probe *p);

bool probe_program(struct probe *p); /* probe_program.c */

bool probe_kernel(struct probe *p); /* probe_host.c */
bool probe_layers(struct probe *p);
bool probe_namespace_limits(struct probe *p);
bool probe_core_pattern(struct probe *p);
bool probe_protected_hardlinks(struct probe *p);
