/*
 * mount_plan.h - what a cell's file tree is made of.
 *
 * A plan is data: building one touches no file and needs no privilege, so it
 * can be printed (brig explain), compared in a test and fuzzed. jail/child
 * carries it out. Texts are borrowed from the caller and must outlive the plan.
 *
 * Everything is mounted over something that the image already has, or over a
 * directory of a mount made just before: nothing is created by path in a tree
 * that an attacker could have prepared (CVE-2025-31133 and its family).
 */
#pragma once
#include "err.h"
#include "limits.h"

#include <stdio.h>
#include <sys/mount.h>

enum mount_kind {
	MOUNT_ROOT,   /* the rootfs from the store */
	MOUNT_DEVICE, /* one of the host's device nodes, checked by its number */
	MOUNT_PROC,   /* a fresh procfs that shows nothing but the cell's own processes */
	MOUNT_TMPFS,
	MOUNT_TRUST,  /* NET_TRUST_PATH: the certificates that programs must trust when brig-proxy terminates their TLS */
	MOUNT_TERMINALS, /* a devpts of the cell: only for a session that asked for terminals */
	MOUNT_SHOWN,  /* a host directory that the user asked to show, read-only: below /workspace, or the packages of the run */
};

enum mount_flag {
	MF_RO     = 1 << 0,
	MF_NOEXEC = 1 << 1,
	MF_NODEV  = 1 << 2, /* nosuid is always on */
};

struct mount_step {
	enum mount_kind kind;
	const char     *to;            /* path below the new root, without the leading slash; "" is the root */
	unsigned        flags;
	unsigned        major, minor;  /* MOUNT_DEVICE */
	uint64_t        bytes, inodes; /* MOUNT_TMPFS */
	int             shown;         /* MOUNT_SHOWN: which of the caller's directories */
};

/* Where a run has its layer of packages: a place in the rootfs, since what looks for files of a program looks below /workspace. */
#define MOUNT_LAYER "opt/packages"

enum { MOUNT_MAX = 32, MOUNT_SHOWN_MAX = 16 };

/* Terminals of one cell at once. MONITOR_RUNS_MAX times this is less than kernel.pty.max - kernel.pty.reserve, so cells cannot use up the host's. */
#define MOUNT_TERMINALS_MAX 8

struct mount_plan {
	struct mount_step step[MOUNT_MAX];
	size_t            n;
};

struct mount_options {
	uint64_t           tmp_bytes, workspace_bytes, inodes;
	bool               workspace_exec, trust, terminals;
	const char *const *shown; /* "workspace/NAME" of each --ro directory, and MOUNT_LAYER */
	size_t             shown_len;
};

/* With no shown directories, no certificates and no terminals. */
struct mount_options mount_options_from_limits(const struct limits *limits, bool workspace_exec);

must_use int mount_plan_build(struct mount_plan *plan, const struct mount_options *mount_options, struct err *e);
void         mount_plan_print(const struct mount_plan *plan, FILE *out);
const char  *mount_kind_name(enum mount_kind kind);

/* mode: an st_mode. True for directories and regular files. Server, monitor and launcher each check the client's descriptor with it. */
bool         mount_can_ro_bind(unsigned mode);

/*
 * How messages between processes name what is shown, and back: "workspace/NAME" is NAME, the layer is "/". to has room
 * for SHOWN_TO_MAX bytes.
 */
enum { SHOWN_NAME_MAX = 256, SHOWN_TO_MAX = SHOWN_NAME_MAX + 16 };
const char  *mount_shown_name(const char *to);
void         mount_shown_to(const char *name, char to[SHOWN_TO_MAX]);

/* MOUNT_ATTR_* of a step. */
static inline uint64_t mount_step_attrs(const struct mount_step *m)
{
	return MOUNT_ATTR_NOSUID | (m->flags & MF_RO ? MOUNT_ATTR_RDONLY : 0u) | (m->flags & MF_NOEXEC ? MOUNT_ATTR_NOEXEC : 0u) |
	       (m->flags & MF_NODEV ? MOUNT_ATTR_NODEV : 0u);
}

/* "ro,nosuid,nodev,noexec" */
char *mount_print_flags(const struct mount_step *step, char *buf, size_t len);
