/*
 * probe_kit.h - what probe functions are written with. For jail/doctor/probe*.c only.
 *
 * check_sys_result() takes the result of one system call and returns true when it worked.
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

bool check_sys_result(struct probe *p, long r, const char *fmt, ...) printf_like(3, 4);

/*
 * Writes the finding of a refusal of which more is known, and returns false. config, since and unit come from the row
 * when they are NULL.
 */
bool report_refused(struct probe *p, struct refusal r, const char *fmt, ...) printf_like(3, 4);

/* Findings in words instead of an errno. report_missing() returns false; report_degraded() and report_detail() return true. */
bool report_missing(struct probe *p, const char *cause, const char *fix);
bool report_degraded(struct probe *p, const char *cause, const char *fix);
bool report_better_fix(struct probe *p, const char *fix); /* replaces the fix of the finding by a better one; returns false */
bool report_detail(struct probe *p, const char *fmt, ...) printf_like(2, 3);

/* mount(); when it fails, it also tries the twin (refusal.h). */
bool mount_or_report(struct probe *p, const char *what, const char *on, const char *type, unsigned long flags, const char *options);

/*
 * A sandbox: namespaces of our own to try things in. A user namespace comes
 * first, as in real jails. If it cannot be made, or its maps cannot be written
 * because there is no procfs, a process with CAP_SYS_ADMIN goes on without it:
 * one missing thing must not make every row fail.
 */
bool sandbox_enter(struct probe *p, int flags);
bool sandbox_unshare(struct probe *p, int flags); /* each flag in a call of its own; writes the finding of a refusal */
bool sandbox_map_self(struct probe *p);           /* maps our uid and gid to 0, and no others */
bool sandbox_become_child(struct probe *p);       /* fork; the child goes on (and reports), the parent waits */
bool lifeline_open(struct probe *p);           /* before a probe: a pipe; its end of file means that the probe has ended */
_Noreturn void wait_for_end_of_probe(void);           /* for helpers: waits for a signal or the end of the probe, also a past one */
bool sandbox_enter_tmpfs(struct probe *p);                /* chdir to an empty tmpfs; needs CLONE_NEWNS */

bool has_procfs(void); /* whether /proc is a procfs */
/* Id maps are files of /proc: without it, writes the finding and returns false. */
bool require_procfs(struct probe *p);

void remove_leftover_groups(const struct surroundings *at); /* removes what a killed probe left in the cgroup tree */

#define PROBE(name, need, run, since, config, purpose) bool probe_##run(struct probe *p);
#include "probe.def"
#undef PROBE
