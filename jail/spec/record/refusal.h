/*
 * refusal.h - which layer of the host refused a call, and what to do about it.
 *
 * EPERM can come from a dozen places. Pure: takes what a probe observed, gives the
 * layer and one line of advice.
 *
 * The twin: the probe repeats a refused call with arguments for which the kernel
 * itself returns another errno (EINVAL, ENOENT) before it checks permissions. When
 * the twin gets the same errno, a seccomp filter answered both.
 */
#pragma once
#include "defs.h"

enum refuser {
#define REFUSER(id, words) REFUSER_##id,
#include "refusal.def"
#undef REFUSER
};

/* Where brig runs. Only the wording of the advice depends on it. */
enum where {
	WHERE_PLAIN,
	WHERE_SERVICE, /* a systemd unit */
	WHERE_DOCKER,
	WHERE_PODMAN,
	WHERE_KUBERNETES,
	WHERE_NSPAWN,
	WHERE_LXC,
	WHERE_CONTAINER, /* of another kind */
	WHERE_WSL,
	WHERE_COUNT,
};

struct surroundings {
	enum where where;
	bool       is_root;
	bool       is_monitor;       /* the monitor of a service: not root, but may map ids that are not its own */
	bool       chrooted;
	int        seccomp;         /* 0 none, 1 strict, 2 filter, -1 unknown */
	int        userns_clone;    /* kernel.unprivileged_userns_clone (Debian); -1: no such sysctl */
	int        apparmor_userns; /* kernel.apparmor_restrict_unprivileged_userns (Ubuntu); -1: none */
	uint64_t   cap_eff, cap_bnd;
	unsigned   uid, gid;
	char       kernel[72];
	char       tag[32];         /* brig-doctor-PID-...: the name of everything that a probe creates */
};

struct refusal {
	int         errnum;
	int         twin;    /* errno of the twin, 0 when there is none */
	uint64_t    caps;    /* capabilities that the kernel asks for, one bit each */
	bool        on_file; /* the call is on a file, whose owner and mode can cause EACCES */
	const char *limit;   /* sysctl behind ENOSPC, like "user.max_net_namespaces" */
	const char *config;  /* kernel option, like "CONFIG_NET_NS" */
	const char *since;   /* first kernel that has it, like "5.12" */
	const char *unit;    /* how to change the settings of a systemd unit so that its filter allows the call */
};

enum refuser  refusal_find_refuser(const struct refusal *r, const struct surroundings *at);
const char *refuser_text(enum refuser by); /* "a seccomp filter that brig was started under" */

/* "EPERM (a seccomp filter that brig was started under)"; return buf */
char *refusal_print_cause(const struct refusal *r, enum refuser by, char *buf, size_t len);
char *refusal_print_advice(const struct refusal *r, enum refuser by, const struct surroundings *at, char *buf,
			   size_t len);

const char *where_name(enum where where);
const char *where_unmask_advice(enum where where);  /* how to get a complete /proc here */
const char *where_writable_advice(enum where where); /* how to make the cgroup tree writable here */
