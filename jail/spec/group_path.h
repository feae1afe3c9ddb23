/*
 * group_path.h - which control group we are in, and what the kernel's flat files say.
 *
 * Pure: takes bytes of /proc/self/cgroup and of counters like memory.events.
 */
#pragma once
#include "defs.h"

/*
 * The path of our own group in the hierarchy of a controller ("" for cgroup v2),
 * without a trailing slash, so "" for the root. -1 when there is none, it does
 * not fit, or its line has no end: it was cut, and names another group.
 */
must_use int group_path_find(const char *proc_self_cgroup, const char *controller, char *ret, size_t len);

/* Is it one of the words of a list with blanks, commas or line ends between them? */
bool group_list_has(const char *list, const char *word);

/* "max 3\noom_kill 0\n", "oom_kill" -> 0. RECORD_NONE (-1) when the key is not there. */
int64_t group_key_value(const char *text, const char *key);

/* Sum over devices of "8:0 rbytes=1 wbytes=2" (key "rbytes="); -1 when it is no figure. */
int64_t group_device_sum(const char *text, const char *key);
