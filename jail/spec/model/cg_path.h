/*
 * cg_path.h - the control group of a process, and the counters in the kernel's flat files.
 *
 * Pure: takes bytes of /proc/self/cgroup and of counters like memory.events.
 */
#pragma once
#include "defs.h"

/*
 * The path of our own group in the hierarchy of a controller ("" for cgroup v2),
 * without a trailing slash, so "" for the root. -1 when there is none, when it
 * does not fit or has a component that begins with "..", or when its line has no
 * newline: such a line was cut, and its path names another group.
 */
must_use int cg_path_find(const char *proc_self_cgroup, const char *controller, char *ret, size_t len);

/* Whether `word` is in a list that is separated by blanks, commas or newlines. */
bool cg_list_has(const char *list, const char *word);

/* "max 3\noom_kill 0\n", "oom_kill" -> 0. -1 (RECORD_NONE) when the key is not there, or its value is negative. */
int64_t cg_find_key_value(const char *text, const char *key);

/* Sum over devices of "8:0 rbytes=1 wbytes=2" (key "rbytes="); -1 when a value is negative or the sum overflows. */
int64_t cg_device_sum(const char *text, const char *key);
