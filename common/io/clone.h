/* clone.h - clones into a control group, and clones that share memory until their exec */
#pragma once
#include "defs.h"

#include <linux/sched.h>
#include <sys/types.h>

/*
 * clone3() into the v2 control group of this descriptor, by CLONE_INTO_CGROUP (Linux 5.7), which args need not have;
 * group -1: into the caller's. A group that was lent to other ids (cg_lend()) may be systemd's for a moment: EACCES is
 * tried again for CLONE_LENT_MS, until it is lent again.
 */
enum { CLONE_LENT_MS = 100 };
pid_t clone_into_group(const struct clone_args *args, int group);

/*
 * The same, and the child shares the caller's memory until it execs or exits; the caller waits for that (CLONE_VM |
 * CLONE_VFORK). No page is copied, and none has to be copied again by a write. The child runs run(arg) on a stack of
 * its own; run() may change nothing that the caller uses, must not return, and must not wait for another process: the
 * caller would wait, too. What the child changes of the memory itself, such as PR_SET_DUMPABLE, is the caller's to
 * restore. While the memory is shared, the kernel's OOM killer never chooses the child (in_vfork(), Linux 4.6), and so
 * not the caller with it. Not for processes with threads.
 */
pid_t clone_sharing_memory(const struct clone_args *args, int group, void (*run)(void *arg), void *arg);

/*
 * The same, but the caller does not wait: both run at once in the same memory. So run() calls the kernel by raw_call()
 * only, because errno is the caller's, too, and what it reads must stay as it is. The caller reaps the child before it
 * makes another one: they have the same stack.
 */
pid_t clone_beside(const struct clone_args *args, void (*run)(void *arg), void *arg);
