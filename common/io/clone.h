/* clone.h - a clone into a control group */
#pragma once
#include "defs.h"

#include <linux/sched.h>
#include <sys/types.h>

/*
 * clone3() into the v2 control group of this descriptor, by CLONE_INTO_CGROUP (Linux 5.7), which args need not have; group -1: into the
 * caller's. A group that was lent to other ids (group_lend()) may be systemd's for a moment: EACCES is tried again for CLONE_LENT_MS,
 * until it is lent again.
 */
enum { CLONE_LENT_MS = 100 };
pid_t clone_into_group(const struct clone_args *args, int group);
