/*
 * sys.h - system calls that glibc 2.36 does not wrap, under the kernel's own names.
 *
 * Same arguments, errno on failure: when glibc catches up, the wrapper is
 * deleted and nothing else changes. Numbers come from the kernel's headers.
 */
#pragma once
#include "defs.h"

#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int openat2(int dir, const char *path, const struct open_how *how, size_t size)
{
	return (int)syscall(SYS_openat2, dir, path, how, size);
}

static inline pid_t clone3(struct clone_args *args, size_t size)
{
	return (pid_t)syscall(SYS_clone3, args, size);
}

static inline int pivot_root(const char *new_root, const char *put_old)
{
	return (int)syscall(SYS_pivot_root, new_root, put_old);
}

static inline int landlock_create_ruleset(const struct landlock_ruleset_attr *attr, size_t size, uint32_t flags)
{
	return (int)syscall(SYS_landlock_create_ruleset, attr, size, flags);
}

static inline int landlock_add_rule(int ruleset, enum landlock_rule_type type, const void *attr, uint32_t flags)
{
	return (int)syscall(SYS_landlock_add_rule, ruleset, type, attr, flags);
}

static inline int landlock_restrict_self(int ruleset, uint32_t flags)
{
	return (int)syscall(SYS_landlock_restrict_self, ruleset, flags);
}
